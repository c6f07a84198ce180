#!/usr/bin/env python3
"""The documents tell the truth: output shown in a `console` block is what the command prints, a block headed by the name
of a program is a part of it, and links lead somewhere.

After a change: python3 tests/test_documents.py --update   (FLASH_APP or build/cpu/flashsteps-app is run)
"""
# label: full
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
APP = os.environ.get("FLASH_APP", str(ROOT / "build/cpu/flashsteps-app"))
DOCUMENTS = sorted(
    path for path in ROOT.rglob("*.md") if not {"build", ".git", ".venv-notebooks"} & set(path.relative_to(ROOT).parts)
)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^<!-- (\S+) -->\n```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def printed(command):
    words = shlex.split(command)
    assert words[0] == "./flashsteps", f"a console block runs ./flashsteps and nothing else: {command}"
    done = subprocess.run([APP, *words[1:]], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, f"{command}: exit {done.returncode}: {done.stderr}"
    return done.stdout


def rewritten(block):
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{printed(command)}" for command in commands)


def main():
    update = "--update" in sys.argv
    failures = []
    blocks = parts = links = 0
    for path in DOCUMENTS:
        text = path.read_text()
        name = path.relative_to(ROOT)
        for match in BLOCK.finditer(text):
            blocks += 1
            wanted = rewritten(match.group(1))
            if wanted == match.group(1):
                continue
            if update:
                path.write_text(path.read_text().replace(match.group(0), f"```console\n{wanted}```"))
            else:
                failures.append(f"{name}: this block is not what the command prints:\n{match.group(1)}\nbut:\n{wanted}")
        for program, part in PART.findall(text):
            parts += 1
            if part not in re.sub("^  ", "", (path.parent / program).read_text(), flags=re.MULTILINE):
                failures.append(f"{name}: this is no part of {program}:\n{part}")
        for target in LINK.findall(text):
            if "://" in target:
                continue
            links += 1
            if not (path.parent / target).exists():
                failures.append(f"{name}: the link {target} leads nowhere")
    print("\n".join(failures))
    print(f"{blocks} console blocks, {parts} parts of programs, {links} links, {len(failures)} failures")
    assert blocks and parts and links, "no block, part or link was found: nothing was tested"
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
