#!/usr/bin/env python3
"""No misspelt words: codespell over all sources and documents, and aspell (British English) over the documents' prose,
with the project's own words in docs/words.txt. --list prints what aspell does not know."""
# label: deep
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from site_of_tests import ROOT, skip_without  # noqa: E402

WORDS = ROOT / "docs/words.txt"
NO_PROSE = re.compile("|".join([
    r"^```.*?^```$", r"^(?:    [^\n]*\n)+", r"`[^`\n]*`",          # code
    r"\$\$.*?\$\$", r"\$[^$\n]+\$",                               # formulas
    r"<[^>\n]*>", r"\]\([^)]*\)", r"https?://\S+", r"\S*[/_]\S*",  # tags, links, paths and names
]), re.MULTILINE | re.DOTALL)


def documents():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    return [ROOT / path for path in listed] or sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("stages/*/*.md"))


def unknown_words():
    """{word: documents} that neither aspell nor the project's list knows."""
    own = set(WORDS.read_text().split())
    unknown = {}
    for path in documents():
        prose = NO_PROSE.sub(" ", path.read_text())
        words = subprocess.run(["aspell", "list", "--lang=en_GB", "--encoding=utf-8"], input=prose, capture_output=True,
                               text=True, check=True).stdout.split()
        for word in set(words) - own:
            if len(word) > 2:
                unknown.setdefault(word, []).append(str(path.relative_to(ROOT)))
    return unknown


def main():
    skip_without([name for name in ("codespell", "aspell") if not shutil.which(name)], "the spell check")
    unknown = unknown_words()
    if "--list" in sys.argv:
        print("\n".join(sorted(unknown)))
        return 0
    for word, where in sorted(unknown.items()):
        print(f"{word}: in {', '.join(where)}; mend it, or add it to docs/words.txt")
    common = subprocess.run(["codespell", "--skip=./build,./.git,./.venv-notebooks,*.npy,*.bin,*.svg,words.txt",
                             "--ignore-words", WORDS, "."], cwd=ROOT, capture_output=True, text=True)
    print(common.stdout)
    return 1 if unknown or common.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
