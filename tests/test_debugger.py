#!/usr/bin/env python3
# label: full
"""A debugger stops inside a kernel at one thread, by the commands that docs/virtual_gpu.md shows."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APP = os.environ.get("FLASH_APP", str(ROOT / "build/cpu/flashsteps-app"))


def documented():
    """The shell lines of the page's block with gdb, for a gdb that ends by itself."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/virtual_gpu.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [b for b in blocks if "gdb" in b]
    script = re.sub(r"^\$ ", "", block, flags=re.MULTILINE).replace("gdb ", "gdb -batch ", 1)
    assert "build/cpu/flashsteps-app" in script and "print m_new" in script, script
    more = "-ex 'print thread' -ex 'print rows' -ex next -ex 'print P.x[0][0]' --args"
    return script.replace("build/cpu/flashsteps-app", APP).replace("--args", more)


def main():
    if not shutil.which("gdb"):
        sys.exit("gdb is not installed: nothing was tested")
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # its search for leaks traces, too
    done = subprocess.run(["bash", "-c", documented()], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env=environment)
    said = done.stdout + done.stderr
    if "ptrace: Operation not permitted" in said:
        print("SKIPPED: processes can't be traced here")
        return
    line = next(n for n, text in enumerate(open(ROOT / "cuda/03_online_softmax/forward.cu"), 1) if "P.row_sum" in text)
    for words in (rf"Breakpoint 1\S*, flash::cuda::online_softmax::forward<64>.*forward\.cu:{line}\n{line}\t",
                  r"\$1 = \{x = \{[\d.]+, ", r"\$2 = \{[\d.]+", r"\$3 = 37\n", r"\$4 = \{begin = 0, end = 32\}",
                  rf"\n{line + 1}\t", r"\$5 = \{0\.\d+, "):
        assert re.search(words, said), f"{words} is not in\n{said}"


if __name__ == "__main__":
    main()
