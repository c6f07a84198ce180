"""Makes a stepper page of traces as the recorder does: page.html with its style, its scripts and the traces."""
import json
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "sim/trace/page"


def joined(traces):
    template = (PAGE / "page.html").read_text()
    names = re.search(r"<!-- scripts: (.*?) -->", template).group(1).split()
    script = "\n".join((PAGE / name).read_text() for name in names)
    data = json.dumps(traces, allow_nan=False).replace("<", "\\u003c")
    parts = {"/*STYLE*/": (PAGE / "style.css").read_text(), "/*SCRIPT*/": script, "TRACES": data}
    return re.sub("|".join(map(re.escape, parts)), lambda place: parts[place[0]], template)
