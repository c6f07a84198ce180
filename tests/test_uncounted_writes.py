#!/usr/bin/env python3
# label: full
"""Statements that would write a tile without counting: none compiles, each counted one beside it does."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ["FLASH_BUILD_DIR"])

COUNTED = """
S = 2.0f * A * B.transpose();
S += A * B.transpose();
m = S.rowwise().maxCoeff();
S = (S.colwise() - m).array().exp();
S.fill(0);
S.transform([](Index, Index, float x) { return x; });
w.store(O, {0, 2}, A);
""".strip().splitlines()

UNCOUNTED = """
S(0, 0) = 1;
m(0) = 1;
S.coeffRef(0, 0) = 1;
S.data()[0] = 1;
*S.values().data() = 1;
S.noalias() = A * B.transpose();
S.noalias() += A * B.transpose();
S.array() = A.array();
S.array() += 1;
S.matrix() = A;
S.row(0) = A.row(0);
S.col(0).setZero();
S.block(0, 0, 1, 1) = A.block(0, 0, 1, 1);
S.topRows(1) = A.topRows(1);
S.transpose() = A;
S.diagonal().setOnes();
S.colwise() += m;
S.setZero();
S.setConstant(2);
S *= 2.0f;
S /= 2.0f;
S -= A;
S.swap(A);
S << 1, 2, 3, 4;
S.triangularView<Eigen::Lower>() = A;
S = A.array().exp() * (A * B.transpose()).array();
S = A * B.transpose() + A;
auto copy = S;
O(0, 0) = 1;
O.host()(0, 0) = 1;
O = A;
""".strip().splitlines()

HEAD = """#include "sim/memory/machine.hpp"
namespace flash::sim {
void worker(Worker<float>& w, const HbmMatrix<float>& O) {
  Tile<float> S = w.sram("S", 2, 2), A = w.sram("A", 2, 2), B = w.sram("B", 2, 2);
  Column<float> m = w.sram("m", 2);
"""


def wrong_lines(statements):
    """Which of the statements the compiler complains about, each in a block of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "statements.cpp"
        source.write_text(HEAD + "".join(f"{{ {s} }}\n" for s in statements) + "}\n}\n")
        compile_it = next(shlex.split(e["command"]) for e in json.loads((BUILD / "compile_commands.json").read_text())
                          if e["file"].endswith("sim/memory/machine.cpp"))
        keep = [a for a in compile_it[1:] if re.match(r"-(I|D|std|m|f)", a) and "pch" not in a]
        keep += [b for a, b in zip(compile_it, compile_it[1:]) if a == "-isystem" for b in ("-isystem", b)]
        compiler = next(a for a in compile_it if re.search(r"(\+\+|cc|clang)[\d.-]*$", os.path.basename(a)) and "ccache" not in a)
        done = subprocess.run([compiler, *keep, "-fsyntax-only", "-ferror-limit=0" if "clang" in compiler else "-fmax-errors=0", source],
                              capture_output=True, text=True)
        numbers = {int(n) for n in re.findall(rf"{re.escape(str(source))}:(\d+)", done.stderr)}
        first = HEAD.count("\n") + 1
        return [s for n, s in enumerate(statements, first) if n in numbers], done


wrong, done = wrong_lines(COUNTED)
if wrong or done.returncode != 0:
    sys.exit(f"these are counted and should compile: {wrong}\n{done.stderr[:3000]}")
wrong, done = wrong_lines(UNCOUNTED)
passed = [s for s in UNCOUNTED if s not in wrong and not wrong_lines([s])[0]]  # an error is reported once, so alone again
if passed:
    sys.exit("these compile, and nobody counts what they write:\n" + "\n".join(passed) + "\n" + done.stderr[-1500:])
print(f"{len(UNCOUNTED)} uncounted statements refused by the compiler")
