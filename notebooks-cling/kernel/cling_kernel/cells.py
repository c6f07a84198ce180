"""Cuts a cell into what Cling takes one at a time: preprocessor lines, definitions, statements.

Cling reads a line as one kind of thing. A notebook's cell may hold an include, two functions and a loop: here it is cut
where each of them ends, by brackets and by what stands before a body. Nothing is parsed further.
"""
import re
from dataclasses import dataclass


@dataclass
class Piece:
    kind: str  # "directive", "definition", "binding" or "statements"
    text: str
    line: int  # of the cell, from 1


def without_magic(cell, source):
    """A cell `%%name words` is the call name_cell("words", "the lines below", "source")."""
    if not (magic := re.match(r"%%(\w+)[ \t]*(.*)(?:\n|$)", cell)):
        return cell
    name, words = magic.group(1), magic.group(2).strip()
    end = "cell"
    while f'){end}"' in cell:
        end += "_"
    return f'{name}_cell(R"{end}({words}){end}", R"{end}({cell[magic.end():]}){end}", "{source}");'


def refusal(cell, knows):
    """Why the cell is no C++, in a sentence; else nothing. `knows`: does C++ know a name?"""
    if magic := re.match(r"%%(\w+)", cell):
        function = f"{magic.group(1)}_cell"
        if not knows(function):
            return (f"{magic.group()} was asked for, but there is no function {function} to take the cell; "
                    "run the cell that includes or defines it, or spell it as that does")
    elif other := re.match(r"%\s*\w+|!\s*([A-Za-z_]\w*)(?=[ \t]*(?:$|\n)|[ \t]+[-\w./~])", cell):
        if not (other.group(1) and knows(other.group(1))):
            return f"{other.group()} was asked for, but this kernel is C++, without IPython's commands; use a terminal"
    return None


def pieces(cell):
    """The cell's pieces in order. Statements next to each other are one: variables of one are known in the next. But what
    makes a constant or a reference stands alone: among others Cling makes it too early or too late."""
    joined = []
    for piece in _cut(cell):
        before = joined[-1] if joined else None
        alike = before and before.kind == piece.kind == "statements"
        if alike and not _is_constant(piece.text) and not _is_constant(before.text):
            lines_between = piece.line - before.line - before.text.count("\n")
            before.text += "\n" * max(1, lines_between) + piece.text
        else:
            joined.append(piece)
    return joined


def _is_constant(statement):
    """Does it make a constant or a reference?"""
    head = re.match(r"[^=({;]*", statement).group()
    return bool(re.search(r"\b(const|constexpr|constinit|static|thread_local)\b|&\s*\w+\s*$", head))


def is_open(cell):
    """Does a bracket wait for its end?"""
    code = _without_literals(cell)
    return sum(code.count(c) for c in "([{") > sum(code.count(c) for c in ")]}")


# ---- what can't hold a bracket that counts

_LITERAL = re.compile(
    r"""//[^\n]* | /\*.*?(?:\*/|\Z)                                         # comments
      | (?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"    # raw strings
      | (?:(?<!\w)(?:u8|[uUL]))?"(?:\\.|[^"\\\n])*"?                        # strings
      | (?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?                            # characters, but not the mark in 1'000
    """,
    re.VERBOSE | re.DOTALL,
)


def _without_literals(cell):
    """The cell with comments blank and literals of underscores, each as long as it was."""

    def blank(match):
        text = match.group()
        if text.startswith("/"):
            return re.sub(r"[^\n]", " ", text)
        return '"' + re.sub(r"[^\n]", "_", text[1:-1]) + '"' if len(text) > 1 else text

    return _LITERAL.sub(blank, cell)


# ---- where a piece ends

_DEFINES = re.compile(
    r"(template|struct|class|union|enum|namespace|using|typedef|extern|static_assert|concept|inline\s+namespace)\b"
)
_BINDS = re.compile(r"(const\s+|static\s+)*auto\s*&{0,2}\s*\[")
_NAMESPACE = re.compile(r'(inline\s+)?namespace\b|extern\s*"')
_CLASS = re.compile(r"(template\s*<.*>\s*)?(typedef\s+)?(struct|class|union|enum)\b[^()=]*$", re.DOTALL)
_REQUIRES = re.compile(r"\brequires\s*(\([^()]*\))?\s*$")
_CONTROL = {"if", "for", "while", "switch", "do", "try", "else", "return", "throw", "case"}
_GOES_ON = tuple(",.)[(?:-+*/%<>=&|{")  # T{1}.f(), T{1} + T{2}


def _cut(cell):
    code = _without_literals(cell)
    at = 0
    while match := re.compile(r"\S").search(code, at):
        start = match.start()
        if code[start] == "#":
            kind, at = "directive", _end_of_directive(code, start)
        else:
            kind, at = _end_of_item(code, start)
        yield Piece(kind, cell[start:at], cell.count("\n", 0, start) + 1)


def _end_of_directive(code, start):
    """Of a line with its continuations; of #if the whole up to its #endif."""
    depth = 0
    for match in re.compile(r"^[ \t]*#[ \t]*(\w*)(?:\\\n|[^\n])*|[^\n]+", re.MULTILINE).finditer(code, start):
        word = match.group(1) or ""
        depth += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
        if depth <= 0:
            return match.end()
    return len(code)


def _end_of_item(code, start):
    brackets = braces = 0
    body = end = None
    is_function = False
    for match in re.compile(r"[()\[\]{};]").finditer(code, start):
        c, at = match.group(), match.start()
        if c in "([":
            brackets += 1
        elif c in ")]":
            brackets -= 1
        elif c == "{":
            if not brackets and not braces:
                body = at
            braces += 1
        elif c == "}":
            braces -= 1
            if braces <= 0 and brackets <= 0:
                head = code[start:body]
                is_function = _first_word(head) not in _CONTROL and _is_function(head)
                if _ends(head, code[at + 1 :].lstrip(), is_function):
                    end = at + 1
                    break
        elif not brackets and not braces:
            is_function, end = False, at + 1
            break
    end = end or len(code)
    text = code[start:end]
    if _DEFINES.match(text) or is_function:
        return "definition", end
    return ("binding" if _BINDS.match(text) else "statements"), end


def _first_word(text):
    return re.match(r"\w*", text).group()


def _ends(head, rest, is_function):
    """Does the piece end with the body behind `head`, where `rest` follows?"""
    first, next_word = _first_word(head), _first_word(rest)
    if _CLASS.match(head) or _REQUIRES.search(head):
        return False  # a ';' or a body is to come
    if next_word in ("else", "catch") or (first == "do" and next_word == "while"):
        return False
    if is_function:
        return not rest.startswith("{")  # the end of b{1} in  X::X() : a(0), b{1} {}
    if rest.startswith(";"):
        return False
    return first in _CONTROL or bool(_NAMESPACE.match(head)) or not rest.startswith(_GOES_ON)


_FUNCTION = re.compile(
    r"""(\[\[[^\]]*\]\]\s*)*(?!\[)                                              # attributes; no lambda
        (\w|::|<(?!<)|>|[,\s&*~@\[\]]|operator\s*\S+?(?=\s*@))+@\s*             # type, name and parameters, which are @
        (const\b|volatile\b|noexcept\b|override\b|final\b|&&?|@|requires\b.*|->\s*[\w:<>,\s&*@]+|\s)*
        (:\s*\w.*)?$                                                            # initialisers of a constructor
    """,
    re.VERBOSE | re.DOTALL,
)


def _is_function(head):
    """Is `head` what stands before a function's body?"""
    while True:  # from the innermost out: (…) becomes @, {…} nothing
        flat = re.sub(r"\([^()]*\)|\{[^{}]*\}", lambda m: "@" if m.group().startswith("(") else "", head)
        if flat == head:
            break
        head = flat
    return bool(_FUNCTION.match(re.sub(r"operator\s*@\s*@", "operator_call@", head)))
