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


class Library(unittest.TestCase):
    """What a reader may do wrong, and what flash.hpp then says: cells of one kernel, one after the other."""

    LINE = "__syncthreads();  // the maxima of all warps are there"

    @classmethod
    def setUpClass(cls):
        notebook = notebook_of('#include "flash.hpp"\nusing namespace flash;\nusing namespace flash::notebook;')
        cls.client = run.client_of(notebook)
        cls.client.allow_errors = True
        cls.kernel = cls.client.setup_kernel()
        cls.kernel.__enter__()
        cls.client.execute_cell(notebook.cells[0], 0)
        cls().says("Inputs in16 = draw_inputs({1, 1, 1, 64, 256, 64, 64}, Format::fp16, 1);\n"
                   "Inputs in = example_hand(Format::fp32); Problem<float> p(in);")

    @classmethod
    def tearDownClass(cls):
        cls.kernel.__exit__(None, None, None)

    def says(self, code, error=None):
        cell = nbformat.v4.new_code_cell(code)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        names = [o.ename for o in cell.outputs if o.output_type == "error"]
        self.assertEqual(names, [error] if error else [], cell.outputs)
        return run.text_of(cell)

    def refuses(self, code, *words):
        said = self.says(code, "Exception")
        for word in words:
            self.assertIn(word, said)
        self.assertNotIn("_cell(R", said)

    def test_a_kernel_that_was_interrupted_leaves_the_next_one_whole(self):
        soon = "std::thread([] { sleep(1); kill(getpid(), SIGINT); }).detach();"
        for name, loop in (("meets", "while (true) __syncthreads();"), ("alone", "for (volatile int i = 0;;) i = 1;")):
            self.says(f"%%kernel {name} = 03/forward\n- {self.LINE}\n+ {loop}")
            cell = f'#include <thread>\nStepper a({{"{name}"}}, in16);\n{soon}\na.check()'
            self.assertIn("stopped", self.says(cell, "KeyboardInterrupt"))
            self.assertIn("  ok", self.says('Stepper b({"03/forward"}, in16); print(b.check());'))
            self.assertIn("[interrupted] the run was stopped", self.says("print(a.check());"))

    def test_a_stop_that_there_is_not(self):
        new = 'Stepper s({"03/forward"}, in16); '
        for stop, *words in (
            ('to_mark("tile column", 1, 1)', 'mark "tile column" 1 of warp 1', "not met", '"column tile" 0', "a new St"),
            ('to_mark("column tile", 99, 1)', '"column tile" 1'),
            ('to_instruction("foo", 0)', 'instruction "foo" of warp 0', "ldmatrix"),
            ("to_barrier(99)", "warp 99", "warps 0 to 31 at most"),
            ("to_barrier(-1)", "warp -1"),
            ("to_barrier(7)", "warp 7", "the kernel that runs has warps 0 to 3"),
            ('to_launch("backward")', 'kernel "backward"', "forward"),
        ):
            with self.subTest(stop):
                self.refuses(f"{new}s.{stop}", *words)
        self.refuses(f'{new}s.shared("P")', "the shared array P", "no kernel is running")
        self.refuses('s.to_mark("column tile", 1, 1); s.registers(99, "S")', "warp 99", "warps 0 to 3")
        self.refuses('s.registers(1, "T")', "the registers T were", "S")
        self.assertIn("no kernel is running", self.says('s.to_end(); s.shared("P")', "Exception"))

    def test_a_name_that_there_is_not(self):
        self.refuses("show(picture(p.Q, 9));", "head 9 was asked for, but there is head 0;")
        for cell in ('edit_kernel("03/frwd", "m");', 'Stepper s({"03/frwd"}, in16);', "%%kernel m = 03/frwd"):
            self.refuses(cell, 'kernel "03/frwd"', "has 03/forward;")
        self.refuses("%%kernel", "has no name; write %%kernel NAME")
        misspelt = self.LINE.replace("threads", "thread")
        self.refuses(f"%%kernel m = 03/forward\n- {misspelt}\n+ ;", "no such line", f'is "{self.LINE}"')

    def test_what_a_cell_shows(self):
        self.assertIn("<svg", self.says('show(p.Q, picture(p.K, 0, "keys"));'))
        self.assertRegex(self.says("Bench<float> bench(p);\nauto Q = bench.worker.load(p.Q, {0, 2});\nQ"),
                         r"(?:-?[\d.]+ +-?[\d.]+\n?){2}")
        self.assertRegex(self.says("Eigen::Matrix2f m; m << 1, 2, 3, 4;\nm"), r"1 2\n3 4")


if __name__ == "__main__":
    unittest.main()
