#!/usr/bin/env python3
"""The site builds without a warning, within its time; its figures are well-formed, its pages show what was counted; and
in a browser, from file://, the formulas render."""
# label: full
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from site_of_tests import PROGRAMS, ROOT, Page, built, missing, skip_without  # noqa: E402

MOST_SECONDS = 180
LESSONS = sorted(path.parent.name[:2] for path in ROOT.glob("stages/*/stage.json"))


def printed(program, *words):
    return subprocess.run([PROGRAMS / program, *words], capture_output=True, text=True, check=True).stdout


def figures_are_well_formed(html):
    asked = {name for path in ROOT.glob("stages/*/lesson.md")
             for name in re.findall(r"^<!-- site: figure (\w+) -->$", path.read_text(), re.MULTILINE)}
    known = set(printed("figures").split())
    assert asked and asked == known, f"lessons show {sorted(asked)}, the program draws {sorted(known)}"
    found = 0
    for lesson in LESSONS:
        text = (html / f"lesson{lesson}.html").read_text()
        drawings = re.findall(r"<figure>.*?</figure>", text, re.DOTALL)
        assert drawings, f"lesson {lesson} shows no figure"
        for svg in re.findall(r"<svg.*?</svg>", "".join(drawings), re.DOTALL):
            xml.etree.ElementTree.fromstring(svg)
            assert not re.search(r"[=\"\s,]-?nan\b", svg), f"a figure of lesson {lesson} has no number where one belongs"
            found += 1
    return found


def pages_show_what_was_counted(html):
    law = json.loads(printed("flashsteps-app", "why", "03", "--json"))["forward"]["after"]
    change = (html / "change03.html").read_text()
    assert f"{law['hbm']['elements']:,}" in change and law["closed_form"]["text"] in (html / "index.html").read_text()
    errata = json.loads(printed("errata"))
    page = (html / "errata.html").read_text()
    for erratum in errata:
        assert f'wrong">{erratum["wrong"]}<' in page and f'right">{erratum["right"]}<' in page, erratum["statement"]
    for page in html.glob("*.html"):
        assert "<!-- site:" not in page.read_text(), f"{page.name} asks for a part that was not made"


def teachers_numbers_are_the_lessons():
    """What is to stand on the board is in the output of a lesson's command."""
    lessons = " ".join(path.read_text() for path in ROOT.glob("stages/*/lesson.md"))
    numbers = re.findall(r"\d\.\d{3}", (ROOT / "docs/site/teachers.md").read_text())
    assert numbers
    for number in numbers:
        assert re.search(rf"[ (\[]{re.escape(number.rstrip('0'))}", lessons), f"no lesson has {number}"


def formulas_render(html, browser):
    """In a headless browser each formula of each lesson becomes a drawing, without an error of MathJax's."""
    formulas = 0
    for lesson in LESSONS:
        page = html / f"lesson{lesson}.html"
        wanted = len(re.findall(r"\\\(|\\\[", page.read_text()))
        with tempfile.TemporaryDirectory() as profile:
            shown = subprocess.run(
                [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                 "--virtual-time-budget=20000", "--dump-dom", page.as_uri()],
                capture_output=True, text=True, timeout=120).stdout
        drawn = len(re.findall(r'class="MathJax_SVG"', shown))
        assert wanted and drawn == wanted, f"lesson {lesson} has {wanted} formulas, {drawn} were drawn"
        for sign in ("rgb(255, 255, 136)", "merror", "Math Processing Error"):  # the first: a box with its complaint
            assert sign not in re.sub(r"<style.*?</style>", "", shown, flags=re.DOTALL), f"lesson {lesson}: {sign}"
        formulas += wanted
    return formulas


def main():
    skip_without(missing(), "the site")
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        html = built(folder)
        seconds = time.monotonic() - begin
        assert seconds < MOST_SECONDS, f"the site took {seconds:.0f} s, more than {MOST_SECONDS}"
        figures = figures_are_well_formed(html)
        pages_show_what_was_counted(html)
        teachers_numbers_are_the_lessons()
        for path in html.glob("lesson*.html"):
            assert not [link for _, link in Page(path).links if link.startswith(("http:", "//"))], path.name
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        formulas = formulas_render(html, browser) if browser else 0
    print(f"built in {seconds:.0f} s; {figures} figures, {formulas} formulas")
    skip_without([] if browser else ["chromium"], "all else holds; that formulas render")


if __name__ == "__main__":
    main()
