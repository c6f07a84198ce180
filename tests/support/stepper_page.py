"""Makes a stepper page of traces as the recorder does: page.html with its style, its scripts and the traces."""
import json
import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "sim/trace/page"


def source(name):
    """With a deliberate mistake where FLASH_STEPPER_MISTAKE asks for one: [file, right, wrong] as JSON."""
    text = (PAGE / name).read_text()
    file, right, wrong = json.loads(os.environ.get("FLASH_STEPPER_MISTAKE", '["", "", ""]'))
    if name != file:
        return text
    assert text.count(right) == 1, f"{right} does not stand once in {file}"
    return text.replace(right, wrong)


def joined(traces):
    template = source("page.html")
    names = re.search(r"<!-- scripts:(.*?)-->", template, re.DOTALL).group(1).split()
    script = "".join(source(name) for name in names)
    data = json.dumps(traces, allow_nan=False).replace("<", "\\u003c")
    parts = {"/*STYLE*/": source("style.css"), "/*SCRIPT*/": script, "TRACES": data}
    return re.sub("|".join(map(re.escape, parts)), lambda place: parts[place[0]], template)
