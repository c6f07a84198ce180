"""GitHub's Markdown, as the lessons are written, into Doxygen's: formulas, links, anchors, and the parts that the build
makes, which a page asks for by a comment: <!-- site: figure traffic_over_M -->."""
import html
import os
import re

from app import ROOT, STAGES

BLOCK = r"^```.*?^```$|^(?:    [^\n]*\n)+"
CODE = re.compile(rf"({BLOCK}|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
MADE = re.compile(r"^<!-- site: (.*?) -->$", re.MULTILINE)
LINK = re.compile(r"\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
SOURCES = re.compile(r"(?:sim|stages/common|cuda/ptx|cuda/common)/.*\.hpp$|stages/.*\.hpp$")


def page_of(path):
    """The site's page of a Markdown file of the project; None for one that has none."""
    path = str(path)
    for stage in STAGES:
        if path == f"stages/{stage.id}/lesson.md":
            return f"lesson{stage.number}"
    known = {"README.md": "readme", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog",
             "stages/common/data/README.md": "data", "tests/golden/README.md": "golden"}
    if path in known:
        return known[path]
    if re.fullmatch(r"docs/(site/)?\w+\.md", path):
        return os.path.basename(path)[:-3].replace("_", "")
    return None


def slug(heading):
    """As GitHub makes it, for links that say #the-code."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def program_page(path):
    """The page, with anchor, that shows a stage's program or kernel; None for other files."""
    for stage in STAGES:
        for program in stage.programs():
            if path in (stage.cpu(program), stage.kernel(program)):
                return f"pair{stage.number}.html#pair{stage.number}-{program}"
    return None


def link(text, target, folder):
    if "://" in target:
        return f"[{text}]({target})"
    path, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(folder, path)) if path else ""
    page = page_of(path)
    if page:
        return f"[{text}](@ref {page}{'-' + anchor if anchor else ''})"
    if program_page(path):
        words = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
        return f'<a href="{program_page(path)}">{words}</a>'
    if SOURCES.match(path):
        return f"[{text}](@ref {path})"
    return text  # a file that the site doesn't show


def formulas(text):
    text = re.sub(r"\$\$(.+?)\$\$", lambda m: rf"\f[{m.group(1)}\f]", text, flags=re.DOTALL)
    return re.sub(r"(?<!\\)\$([^$\n]+?)\$", r"\\f$\1\\f$", text)


def converted(text, path, made):
    """The Markdown file `path` with this text; `made` gives the HTML file for what a comment asks."""
    folder, page = os.path.dirname(path), page_of(path)
    name = "" if page == "index" else f" {{#{page}}}"
    pieces = CODE.split(re.sub(r"\A<!-- .*? -->\n", "", text))  # a title comes first
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = re.sub(r"^```\w+", "```", piece) if "console" in piece[:12] or "sh\n" in piece[:6] else piece
            continue
        piece = formulas(piece)
        pieces[i] = MADE.sub(lambda m: f"\\htmlinclude[block] {made(*m.group(1).split())}", piece)
    text = "".join(pieces)
    pieces = re.split(f"({BLOCK})", text, flags=re.MULTILINE | re.DOTALL)
    for i in range(0, len(pieces), 2):
        pieces[i] = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", pieces[i])  # Doxygen finds no ** around a formula
        pieces[i] = LINK.sub(lambda m: link(m.group(1), m.group(2), folder), pieces[i])
        pieces[i] = HEADING.sub(
            lambda m: m.group(0) + (name if m.group(1) == "#" else f" {{#{page}-{slug(m.group(2))}}}"),
            pieces[i])
    return "".join(pieces)


def escaped(text):
    return html.escape(text, quote=False)
