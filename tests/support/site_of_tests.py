"""The site as the tests see it: built anew in a folder of their own, from the programs of this build."""
import html.parser
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = pathlib.Path(os.environ.get("FLASH_BUILD_DIR", ROOT / "build/cpu"))
NEEDED = {"doxygen": "doxygen", "dot": "graphviz"}
INSTALLED = {"/usr/share/doxygen-awesome-css/doxygen-awesome.css": "doxygen-awesome-css",
             "/usr/share/javascript/mathjax/MathJax.js": "libjs-mathjax"}


def missing(programs=NEEDED):
    """Packages that are not here."""
    return [package for program, package in programs.items() if not shutil.which(program)] + [
        package for file, package in INSTALLED.items() if not os.path.exists(file)]


def skip_without(packages, what):
    """Ends the test, aloud, where something is not installed."""
    if packages:
        print(f"SKIPPED: {what} needs {', '.join(packages)}")
        sys.exit(77)


def built(folder):
    """The folder of the site's HTML. The build itself refuses every warning of Doxygen's."""
    done = subprocess.run([sys.executable, ROOT / "docs/site/build.py", "--programs", PROGRAMS, "--out", folder],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, f"the site could not be built:\n{done.stdout}{done.stderr}"
    page = pathlib.Path(done.stdout.strip())
    assert page.is_file(), f"the build printed {done.stdout!r}, which is no page"
    return page.parent


class Page(html.parser.HTMLParser):
    """What a page has and what it refers to: ids, links with their tag, and text outside of scripts and code."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.text, self.open = set(), [], [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        for name in ("href", "src"):
            if attributes.get(name) is not None and tag != "meta":
                self.links.append((tag, attributes[name]))
        if tag in ("script", "style", "pre", "code", "svg", "table"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        if not self.open:
            self.text.append(data)
