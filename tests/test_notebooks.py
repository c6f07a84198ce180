#!/usr/bin/env python3
# label: full
"""All notebooks on real Cling: from top to bottom in a fresh kernel with the outputs that the files hold, and once
more in the same kernel with the same ones; and a cell that goes wrong is seen."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-notebooks/bin/python"
SKIPPED = 77
if Path(sys.prefix) != ROOT / ".venv-notebooks":
    if not PYTHON.exists():
        print("skipped: the notebooks' Python is not there; ./flashsteps notebooks makes it")
        sys.exit(SKIPPED)
    os.execv(PYTHON, [PYTHON, __file__, *sys.argv[1:]])

import nbformat  # noqa: E402

sys.path.insert(0, str(ROOT / "notebooks-cling"))
import run  # noqa: E402

NUMBER = re.compile(r"(?<![\w.])[-−]?\d+\.\d+(?:e[-−+]?\d+)?")
STAGES = {path.parent.name for path in (ROOT / "stages").glob("*/stage.json")}
MOST_CELLS, MOST_BYTES = 42, 500_000


def differ(before, after):
    """Do two texts differ in more than the last digits of numbers with a decimal point? Another processor has vectors
    of another length, and so sums in another order."""
    if NUMBER.sub("#", before) != NUMBER.sub("#", after):
        return True
    pairs = zip(NUMBER.findall(before.replace("−", "-")), NUMBER.findall(after.replace("−", "-")))
    return any(abs(float(a) - float(b)) > 0.011 * max(abs(float(a)), 0.1) for a, b in pairs)


def notebook_of(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


class Notebooks(unittest.TestCase):
    def test_they_run_fresh_and_again_and_show_what_the_files_hold(self):
        for path in run.notebooks():
            with self.subTest(path.name):
                kept = nbformat.read(path, as_version=4)
                fresh = nbformat.read(path, as_version=4)
                for cell in fresh.cells:
                    if cell.cell_type == "code":
                        cell.outputs = []
                self.assertEqual(run.run(fresh, again=True), "")
                for number, (before, after) in enumerate(zip(kept.cells, fresh.cells), 1):
                    before, after = run.text_of(before), run.text_of(after)
                    if differ(before, after):
                        self.assertEqual(before, after, f"cell {number}; ./flashsteps notebooks --run --update")

    def test_files(self):
        for path in run.notebooks():
            with self.subTest(path.name):
                text = path.read_text()
                notebook = nbformat.reads(text, as_version=4)
                nbformat.validate(notebook)
                self.assertTrue(path.stem == "00_start_here" or path.stem in STAGES, "named as a stage is")
                self.assertLess(len(text), MOST_BYTES)
                self.assertLessEqual(len(notebook.cells), MOST_CELLS)
                for private in (str(ROOT), "/tmp/", "/home/", "/root/", "0x7f"):
                    self.assertNotIn(private, text)
                for number, cell in enumerate(notebook.cells, 1):
                    self.assertNotIn("execution", cell.metadata, f"cell {number} holds times")
                    if cell.cell_type == "code":
                        self.assertIsNotNone(cell.execution_count, f"cell {number} was not run")
                        names = [o.ename for o in cell.outputs if o.output_type == "error"]
                        on_purpose = "raises-exception" in cell.metadata.get("tags", [])
                        self.assertEqual(names, ["Exception"] * on_purpose, f"cell {number}")

    def test_links_lead_somewhere(self):
        for path in run.notebooks():
            for cell in nbformat.read(path, as_version=4).cells:
                for target in re.findall(r"\]\(([^)#:]+)\)", cell.source) if cell.cell_type == "markdown" else []:
                    self.assertTrue((path.parent / target).exists(), f"{path.name}: {target}")

    def test_a_cell_that_goes_wrong_is_seen(self):
        for cell, words in (
            ("int x = ;", "cell 2: CompileError"),
            ('throw std::runtime_error("says no");', "cell 2: Exception: says no"),
            ("assert(1 == 2);", "cell 2: Signal: abort"),
            ("*reinterpret_cast<volatile int*>(8) = 3;", "cell 2: Signal"),
            ("std::_Exit(0);", "cell 2: DeadKernelError"),
        ):
            with self.subTest(cell):
                self.assertIn(words, run.run(notebook_of("int before = 1;", cell)))
        once = notebook_of("static int n = 0;", "auto [a, b] = std::pair{1, 2};")  # can't be said twice
        self.assertIn("cell 2, the second time", run.run(once, again=True))
        other = notebook_of("int x = 1;", 'std::cout << (getenv("RAN") ? 2 : 1); setenv("RAN", "", 1);')
        self.assertIn("cell 2, the second time, says something else: '1', then '2'", run.run(other, again=True))

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            right, wrong = Path(folder) / "right.ipynb", Path(folder) / "wrong.ipynb"
            nbformat.write(notebook_of("std::cout << 6 * 7;"), right)
            nbformat.write(notebook_of("std::cout << 1;", "no_such_name"), wrong)
            before = wrong.read_text()
            command = [sys.executable, str(ROOT / "notebooks-cling/run.py"), "--update", str(right), str(wrong)]
            ran = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 1)
            first, second = ran.stdout.splitlines()
            self.assertRegex(first, r"^right +1 cells +[\d.]+ s  ok$")
            self.assertRegex(second, r"^wrong +2 cells +[\d.]+ s  cell 2: CompileError: .*no_such_name")
            self.assertEqual(ran.stderr, "")
            self.assertIn("42", run.text_of(nbformat.read(right, as_version=4).cells[0]))
            self.assertEqual(wrong.read_text(), before)

    def test_what_is_missing_is_said_with_what_would_do(self):
        check = notebook_of('#include "notebooks-cling/check.hpp"\nflash::notebook::check_environment();')
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"CXX": "no_such_compiler"}):
            os.environ.pop("FLASH_BUILD_DIR", None)
            run.client_of(check, folder).execute()
        said = check.cells[0].outputs[0].text
        for words in ("MISSING  the folder notebooks-cling: open this", "MISSING  the library of stages: say ./flash",
                      "MISSING  g++ 12 or newer, for kernels of yours: install", "ok       addr2line"):
            self.assertIn(words, said)

    def test_other_outputs_are_other(self):
        self.assertFalse(differ("O = 0.12345 and 1,024", "O = 0.12346 and 1,024"))
        for before, after in (("0.123", "0.223"), ("1,024", "1,025"), ("ok", "NOT ok"), ("1.0", "−1.0"), ("-1.0", "1.0"),
                              ("1.0", "1.0 1.0")):
            self.assertTrue(differ(before, after), f"{before} {after}")


if __name__ == "__main__":
    unittest.main()
