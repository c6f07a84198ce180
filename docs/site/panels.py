"""Sources side by side: a stage beside what it extends, and a stage beside its kernel."""
import difflib
import re
import subprocess

from app import ROOT
from markdown import escaped

BANNER = re.compile(r"\s*// (?:----|==) (.*?)(?: ==)?\s*$")
COMMENT = re.compile(r"(//.*)$")


def code(line):
    before, *comment = COMMENT.split(re.sub(r"(?<=\S) {2,}(?=//)", "  ", line), maxsplit=1)
    return escaped(before) + (f'<span class="comment">{escaped(comment[0])}</span>' if comment else "")


def cell(number, line, kind):
    if line is None:
        return '<td class="n"></td><td class="none"></td>'
    sign = {"removed": "−", "added": "+"}.get(kind, "")
    return f'<td class="n">{number}</td><td class="{kind}"><i>{sign}</i>{code(line)}</td>'


# ---- a step beside the one that it extends

def unified_diff(a, b):
    return subprocess.run(["diff", "--unified=3", "--ignore-all-space", "--label", a, "--label", b, a, b], cwd=ROOT,
                          capture_output=True, text=True).stdout


def alike(a, b):
    return difflib.SequenceMatcher(None, a.split("//")[0].strip(), b.split("//")[0].strip()).ratio()


def matched(removed, added):
    """Pairs (removed, added) in order, lines that are alike beside each other; None where a side has none."""
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    ratio = [[max(0.0, alike(a[1], b[1]) - 0.5) for b in added] for a in removed]
    for i in reversed(range(len(removed))):
        for j in reversed(range(len(added))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + ratio[i][j])
    rows, i, j = [], 0, 0
    while i < len(removed) or j < len(added):
        both = i < len(removed) and j < len(added)
        if both and ratio[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + ratio[i][j]:
            rows.append((removed[i], added[j]))
            i, j = i + 1, j + 1
        elif i < len(removed) and (not both or best[i][j] == best[i + 1][j]):
            rows.append((removed[i], None))
            i += 1
        else:
            rows.append((None, added[j]))
            j += 1
    return closed_up(rows)


def closed_up(rows):
    """A run of lines on the left alone and the run on the right alone that follows share their rows."""
    out, left, right = [], [], []

    def flush():
        for n in range(max(len(left), len(right))):
            out.append((left[n] if n < len(left) else None, right[n] if n < len(right) else None))
        left.clear(), right.clear()

    for a, b in rows:
        if a and b:
            flush()
            out.append((a, b))
        elif a:
            left.append(a)
        else:
            right.append(b)
    flush()
    return out


def diff_rows(unified):
    """(left, right) with (number, line, kind) or None; "gap": lines are left out."""
    rows, removed, added, at_a, at_b = [], [], [], 0, 0

    def flush():
        rows.extend(matched(removed, added))
        removed.clear(), added.clear()

    for line in unified.splitlines()[2:]:
        if line.startswith("@@"):
            flush()
            rows += ["gap"] * bool(rows)
            at_a, at_b = (int(n) for n in re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line).groups())
        elif line.startswith("-"):
            removed.append((at_a, line[1:], "removed"))
            at_a += 1
        elif line.startswith("+"):
            added.append((at_b, line[1:], "added"))
            at_b += 1
        else:
            flush()
            rows.append(((at_a, line[1:], "same"), (at_b, line[1:], "same")))
            at_a, at_b = at_a + 1, at_b + 1
    flush()
    return rows


def changed_lines(unified):
    """Those added and those removed, blank ones left out."""
    lines = [line for line in unified.splitlines()[2:] if line[:1] in "+-" and line[1:].strip()]
    return sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines)


def diff_table(a, b, unified):
    added, removed = changed_lines(unified)
    body = "".join(
        '<tr class="gap"><td colspan="4">⋯</td></tr>' if row == "gap" else
        "<tr>" + "".join(cell(*side) if side else cell(None, None, None) for side in row) + "</tr>"
        for row in diff_rows(unified))
    caption = f"{removed} lines removed (−, hatched), {added} added (+, tinted); blank lines and indentation left out"
    return (f'<table class="sides diff"><caption>{caption}</caption>'
            '<colgroup><col class="n"><col><col class="n"><col></colgroup>'
            f'<thead><tr><th colspan="2">{a}</th><th colspan="2">{b}</th></tr></thead><tbody>{body}</tbody></table>\n')


# ---- a stage beside its kernel

def sections(path):
    """[(banner, [(number, line)])], the head of the file first, under an empty banner."""
    found = [("", [])]
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        banner = BANNER.match(line)
        if banner:
            found.append((banner.group(1), []))
        found[-1][1].append((number, line))
    return found


def aligned(a, b):
    """Sections beside each other by their banners."""
    matcher = difflib.SequenceMatcher(None, [name for name, _ in a], [name for name, _ in b], autojunk=False)
    for kind, i0, i1, j0, j1 in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(a[i0:i1], b[j0:j1])
        else:
            yield from ((s, None) for s in a[i0:i1])
            yield from ((None, s) for s in b[j0:j1])


def lines(section, prefix):
    if section is None:
        return '<td class="none"></td>'
    return "<td>" + "".join(f'<div id="{prefix}-{number}"><b>{number}</b>{code(line)}</div>'
                            for number, line in section[1]) + "</td>"


def pair_table(stage, program):
    """Side by side; a kernel that has no CPU program, alone."""
    cpu, kernel = stage.cpu(program), stage.kernel(program)
    body = ""
    for left, right in aligned(sections(cpu) if cpu else [], sections(kernel)):
        name = (left or right)[0]
        body += f'<tr class="banner"><th colspan="2">{name or "head and grid"}</th></tr>'
        body += f'<tr>{lines(left, program + "-cpu")}{lines(right, program + "-cuda")}</tr>'
    return (f'<table class="sides pair"><colgroup><col><col></colgroup><thead><tr><th>{cpu or "kernels alone"}</th>'
            f'<th>{kernel}</th></tr></thead><tbody>{body}</tbody></table>\n')


def line_link(stage, path, number):
    """Where the site shows that line."""
    for program in stage.programs():
        for side, shown in (("cpu", stage.cpu(program)), ("cuda", stage.kernel(program))):
            if path == shown:
                return f"pair{stage.number}.html#{program}-{side}-{number}"
    raise KeyError(path)
