#!/usr/bin/env python3
"""Every link of the site that leads to the site leads to a page and an anchor that are there. Nothing is fetched."""
# label: deep
import pathlib
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from site_of_tests import Page, built, missing, skip_without  # noqa: E402


def broken_links(html):
    """(number of links, [what is wrong with one])"""
    pages = {path.name: Page(path) for path in html.glob("*.html")}
    count, wrong = 0, []
    for name, page in pages.items():
        for _, link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme or link.startswith("//"):
                continue
            count += 1
            file, anchor = urllib.parse.unquote(target.path) or name, urllib.parse.unquote(target.fragment)
            if not (html / file).is_file():
                wrong.append(f"{name}: {link}: there is no {file}")
            elif anchor == "nested-classes":
                continue  # Doxygen's own: its summary names private nested classes, too
            elif anchor and file in pages and anchor not in pages[file].ids:
                wrong.append(f"{name}: {link}: {file} has no {anchor}")
    return count, wrong


def main():
    skip_without(missing(), "the site")
    with tempfile.TemporaryDirectory() as folder:
        count, wrong = broken_links(built(folder))
    print("\n".join(wrong))
    print(f"{count} links, {len(wrong)} broken")
    assert count > 1000, "hardly a link was found: nothing was tested"
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
