"""Tables whose numbers are counted while the site is built, and tables of cited facts."""
import json
import re

from app import ROOT, STAGES
from markdown import escaped
from panels import line_link

SITE = ROOT / "docs/site"
PROBLEM = ("--n", "256", "--d", "64")  # of the front map: seconds on the virtual GPU


def table(head, rows, caption="", classes=()):
    """Rows of cells; a cell is text or (text, class) or (text, class, columns that it spans). Text is HTML."""
    def cell(c):
        text, kind, span = (*c, 1)[:3] if isinstance(c, tuple) else (c, "", 1)
        marks = (f' class="{kind}"' if kind else "") + (f' colspan="{span}"' if span > 1 else "")
        return f"<td{marks}>{text}</td>"
    return (f'<table class="{" ".join(("made", *classes))}">' + (f"<caption>{caption}</caption>" if caption else "") +
            "<thead><tr>" + "".join(f"<th>{h}</th>" for h in head) + "</tr></thead><tbody>" +
            "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows) + "</tbody></table>\n")


def number(n):
    return (f"{n:,}", "number")


def signed(n):
    return (f"{n:+,}".replace("-", "−") if n else "0", "number")


# ---- the front map

COPIED = re.compile(r"copy_async<threads>\(sm\.(\w+)")  # what an asynchronous copy brings


def overlap(stage, program):
    """What a kernel's lines say is under way while a tile is computed: loads to registers, or asynchronous copies."""
    path = stage.kernel(program)
    text = (ROOT / path).read_text()
    lines = text.splitlines()

    def words(what, names, at, when):
        return f'{what} of {" and ".join(names)}, <a href="{line_link(stage, path, at)}">{when}</a>'
    for at, line in enumerate(lines, 1):
        if "one tile ahead" in line:
            return words("loads", re.findall(r"(\w+)\(thread\)", line), at, "one tile ahead")
        if re.search(r"\bcopy\w*(<\w+>)?\(.*\bnext\b", line):
            names = COPIED.findall(line) or re.findall(COPIED.pattern + r"\[", text)  # or those that have two buffers
            meanwhile = [(n, l.split(": ")[-1]) for n, l in enumerate(lines, 1) if COPIED.search(l) and ": while" in l]
            return "; ".join([words("copies", names, at, "one tile ahead"),
                              *(words("", COPIED.findall(lines[n - 1]), n, when).strip() for n, when in meanwhile)])
    return "none"


def map_row(app, stage, program):
    backward = ("--backward",) if stage.direction(program) == "backward" else ()

    def part(run):
        return run["backward"] if backward else run

    name = stage.short(program)
    cpu = name if stage.cpu(program) else stage.number
    kernel = app.json("run", name, "--on", "vgpu", *PROBLEM, *backward)
    tiles = part(kernel)["tiles"] if "tiles" in part(kernel) else kernel["tiles"]
    blocks = ("--br", str(tiles["br"]), "--bc", str(tiles["bc"])) if tiles else ()
    counted = part(app.json("run", cpu, "--count-only", "--dtype", "fp16", *PROBLEM, *blocks, *backward))
    vgpu = part(kernel).get("vgpu") or kernel["vgpu"]
    return [f'<a href="lesson{stage.number}.html">{stage.titled(program)}</a>', stage.direction(program),
            counted["closed_form"]["text"], number(counted["ledger"]["hbm"]["elements"]),
            number(counted["ledger"]["flops"]["exp"]), overlap(stage, program), number(vgpu["barriers"])]


def front_map(app):
    rows = [map_row(app, stage, program) for stage in STAGES for program in stage.programs() if stage.kernel(program)]
    for later in json.loads((SITE / "generations.json").read_text())["later_stages"]:
        if not any(stage.number == later["stage"][:2] for stage in STAGES):
            rows.append([later["stage"], (f"not here yet: {later['change']}", "", 6)])
    return table(["stage", "pass", "HBM law", "HBM elements", "exps", "overlap in the kernel", "barriers"], rows,
                 f"Counted on one head, N = {PROBLEM[1]}, d = {PROBLEM[3]}, fp16: elements and exps by the CPU "
                 "program's ledger with the kernel's tiles, barriers as all CTAs pass them on the virtual GPU.")


# ---- a stage

ORDER = ["Q", "K", "V", "S", "P", "l", "m", "LSE", "D", "O", "O_acc", "dO", "dP", "dS", "dQ", "dQ_acc", "dK", "dV"]


def ledger_delta(comparison, a, b, problem):
    def place(tensor):
        return ORDER.index(tensor[0]) if tensor[0] in ORDER else len(ORDER)

    def cells(name, pair):
        return [name, number(pair["a"]["read"]), number(pair["a"]["written"]), number(pair["b"]["read"]),
                number(pair["b"]["written"]), signed(pair["change"]["elements"]), signed(pair["change"]["bytes"])]
    rows = [cells(name, pair) for name, pair in sorted(comparison["tensors"].items(), key=place)]
    rows.append(cells("<b>all</b>", comparison["total"]))
    return table(["tensor", f"{a} reads [elements]", f"{a} writes [elements]", f"{b} reads [elements]",
                  f"{b} writes [elements]", "change [elements]", "change [bytes]"], rows,
                 f"One head, N = {problem['n']:,}, d = {problem['d']}, {problem['dtype']}; "
                 f"M = {problem['M']:,} elements.")


def screen(text):
    return f'<pre class="screen">{escaped(text)}</pre>\n'


# ---- cited facts: docs/site/generations.json

def cited(row):
    return f'{escaped(row["source"])}, <span class="date">{row["date"]}</span>'


def timeline(_):
    facts = json.loads((SITE / "generations.json").read_text())
    return table(["", "paper", "first version", "card", "idea", "source"],
                 [[f"<b>{g['name']}</b>", escaped(g["paper"]), f'<span class="date">{g["published"]}</span>',
                   escaped(g["card"]), escaped(g["idea"]), cited(g)] for g in facts["timeline"]])


def support(_):
    facts = json.loads((SITE / "generations.json").read_text())
    names = [g["name"] for g in facts["timeline"]]
    return table(["", *names, "source"],
                 [[f"<b>{row['what']}</b>", *(escaped(row[name]) for name in names), cited(row)]
                  for row in facts["support"]])


def packages(_):
    facts = json.loads((SITE / "generations.json").read_text())
    return table(["", "flash-attn", "PyTorch's SDPA", "here", "source"],
                 [[f"<b>{row['what']}</b>", escaped(row["flash_attn"]), escaped(row["sdpa"]), escaped(row["here"]),
                   cited(row)] for row in facts["packages"]])


# ---- the paper map

ALGORITHM = re.compile(r"Alg(?:\.|orithm) (\d)")
LINE = re.compile(r"\bline (\d+)")


def lines_of(path):
    """{(algorithm, line): [line of the file]} of what the comments name. A file stays with the algorithm named last."""
    found, algorithm = {}, None
    for at, text in enumerate((ROOT / path).read_text().splitlines(), 1):
        comment = text.partition("//")[2]
        named = ALGORITHM.search(comment)
        algorithm = named.group(1) if named else algorithm
        for line in LINE.findall(comment):
            found.setdefault((algorithm, line), []).append(at)
    return found


def paper_of(stage):
    """Whose algorithms the comments of a stage name."""
    return "FA1" if stage.number < "05" else "FA2"


def paper_map(algorithm):
    """Rows (line, its words, whether code stands for it, {path: [(stage, line of the file)]})."""
    for line, (words, has_code) in algorithm["lines"].items():
        places = {}
        for stage in (stage for stage in STAGES if paper_of(stage) == algorithm["paper"]):
            for program in stage.programs():
                for path in filter(None, (stage.cpu(program), stage.kernel(program))):
                    for at in lines_of(path).get((algorithm["number"], line), []):
                        places.setdefault(path, []).append((stage, at))
        yield line, words, has_code, places


def algorithms():
    return json.loads((SITE / "paper_map.json").read_text())["algorithms"]


def paper_map_table(_, number_asked, paper="FA1"):
    algorithm = next(a for a in algorithms() if (a["number"], a["paper"]) == (number_asked, paper))
    rows = []
    for line, words, has_code, places in paper_map(algorithm):
        links = ["<br>".join(
            f'<a href="{line_link(stage, path, at)}">{path.split("/", 1)[1]}:{at}</a>'
            for path, found in places.items() if path.startswith(folder) for stage, at in found)
            for folder in ("stages/", "cuda/")]
        rows.append([line, escaped(words), *(links if any(links) else [("no line of its own", "", 2)])])
    return table(["line", algorithm["name"], "stages/", "cuda/"], rows, escaped(algorithm["source"]))


# ---- errata: numbers by the program that the tests check

def errata(rows):
    return table(["statement", "where", "what holds", "shown by", "as stated", "right"],
                 [[escaped(e["statement"]), escaped(e["source"]), escaped(e["holds"]), escaped(e["shown_by"]),
                   (escaped(e["wrong"]), "number wrong"), (escaped(e["right"]), "number right")] for e in rows])
