#!/usr/bin/env python3
# label: full
"""The notebooks' kernel on real Cling: what cells print and show, how they fail, that the kernel lives on."""
import os
import sys
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-notebooks/bin/python"
if Path(sys.prefix) != ROOT / ".venv-notebooks":
    if not PYTHON.exists():
        print("skipped: the notebooks' Python is not there; ./flashsteps notebooks makes it")
        sys.exit(77)
    os.execv(PYTHON, [PYTHON, __file__, *sys.argv[1:]])

from jupyter_client.manager import start_new_kernel  # noqa: E402


class Kernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["CLING_INCLUDE_PATH"] = str(ROOT)
        cls.manager, cls.client = start_new_kernel(kernel_name="cling", startup_timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.client.stop_channels()
        cls.manager.shutdown_kernel(now=True)

    def run_cell(self, code, timeout=120):
        """The reply's status, text of stdout and stderr, what was shown, and the error."""
        text, shown, error = {"stdout": "", "stderr": ""}, [], None

        def on_output(message):
            nonlocal error
            content = message["content"]
            if message["msg_type"] == "stream":
                text[content["name"]] += content["text"]
            elif message["msg_type"] == "display_data":
                shown.append(content["data"])
            elif message["msg_type"] == "clear_output":
                shown.append("clear")
            elif message["msg_type"] == "error":
                error = (content["ename"], content["evalue"])

        reply = self.client.execute_interactive(code, output_hook=on_output, timeout=timeout, stop_on_error=False)
        self.assertEqual(reply["content"]["status"], "error" if error else "ok")
        return text, shown, error

    def prints(self, code, expected):
        text, _, error = self.run_cell(code)
        self.assertEqual((text["stdout"], error), (expected, None), code)

    def fails(self, code, name, value):
        text, _, error = self.run_cell(code)
        self.assertIsNotNone(error, f"{code}: no error; {text}")
        self.assertEqual(error[0], name, code)
        self.assertIn(value, error[1], code)
        self.prints("std::cout << 6 * 7;", "42")  # it lives on
        return text

    def test_a_cell_may_hold_anything(self):
        self.prints("#include <vector>\nint twice(int x) { return 2 * x; }\nint y = twice(4);\ny", "(int) 8\n")
        self.prints("struct Pair { int a, b; };\nPair p{1, 2};\nstd::cout << p.a + p.b;", "3")
        self.prints("int twice(int x) { return 20 * x; }\nstd::cout << twice(4);", "80")  # defined again
        self.prints("double y = 0.5;\nstd::cout << y;", "0.5")  # with another type
        self.prints("template <class T> concept Small = sizeof(T) < 8;\nstd::cout << Small<char>;", "1")

    def test_statements_run_in_their_order(self):
        self.prints("int i = 1;\ni = 2;\nconst int j = i;\ni = 3;\nint& r = i;\nstatic int s = i;\ni = 4;\n"
                    "std::cout << j << r << s;", "243")

    def test_output_comes_in_order(self):
        self.prints('std::cout << "a"; printf("b"); std::puts("c"); std::cout << "d\\n";', "abc\nd\n")
        text, shown, _ = self.run_cell('std::cout << 1; nb::svg("<svg/>"); std::cout << 2; nb::html("<b>ü</b>");')
        self.assertEqual(text["stdout"], "12")
        self.assertEqual(shown, [{"image/svg+xml": "<svg/>"}, {"text/html": "<b>ü</b>"}])
        _, shown, _ = self.run_cell('nb::display("bundle", "{\\"text/plain\\": \\"x\\", \\"text/latex\\": \\"y\\"}");')
        self.assertEqual(shown, [{"text/plain": "x", "text/latex": "y"}])
        text, shown, _ = self.run_cell('nb::Svg{"<svg></svg>"}')
        self.assertEqual((text["stdout"], shown), ("", [{"image/svg+xml": "<svg></svg>"}]))
        self.assertEqual(self.run_cell("nb::clear();")[1], ["clear"])
        text, _, _ = self.run_cell(r'for (int i = 0; i < 100000; ++i) std::printf("%d\n", i);')
        self.assertEqual(text["stdout"], "".join(f"{i}\n" for i in range(100000)))
        self.prints(r'std::cout << "\x1b]other\x07\x1b[1mbold";', "\x1b]other\x07\x1b[1mbold")

    def test_a_cell_that_does_not_compile(self):
        text = self.fails("int z1 = 1;\nint z = ;", "CompileError", "expected expression")
        self.assertIn("]:2:9: error", text["stderr"])  # the cell's own line
        self.fails("f(3", "CompileError", "bracket is open")
        self.fails("void nowhere(int); nowhere(1);", "CompileError", "unresolved")
        self.fails('#include "no/such/file.hpp"', "CompileError", "file not found")

    def test_a_cell_that_goes_wrong(self):
        for _ in range(20):  # its text is nowhere else, in however many pieces it came
            cell = 'std::cerr << "loud\\n"; throw std::runtime_error("says no\\nand no");'
            text = self.fails(cell, "Exception", "says no")
            self.assertEqual(text, {"stdout": "", "stderr": "loud\n"})
        self.fails("throw 3;", "Exception", "unknown error")
        self.fails("assert(1 == 2);", "Signal", "assert")
        self.fails("*reinterpret_cast<volatile int*>(8) = 3;", "Signal", "memory that is not there")
        self.fails("int zero = 0; 3 / zero", "Signal", "division by zero")
        self.fails("int deep(int n) { volatile char a[4096]; a[0] = n; return deep(n + 1) + a[0]; }\ndeep(0)", "Signal", "memory")
        text, _, _ = self.run_cell('std::cout << "before\\n"; int a = 1;\nint b = ;\nstd::cout << "behind\\n";')
        self.assertNotIn("behind", text["stdout"])

    def test_an_endless_cell_can_be_stopped(self):
        self.prints("int kept = 5;", "")
        message = self.client.execute("for (volatile int i = 0;;) i = i + 1;", stop_on_error=False)
        time.sleep(1)
        self.manager.interrupt_kernel()
        reply = self.client.get_shell_msg(timeout=30)
        while reply["parent_header"].get("msg_id") != message:
            reply = self.client.get_shell_msg(timeout=30)
        self.assertEqual(reply["content"]["ename"], "KeyboardInterrupt")
        self.prints("std::cout << kept;", "5")

    def test_the_stages_headers(self):
        self.prints('#include "stages/03_online_softmax/forward.hpp"\n'
                    "flash::Options options;\noptions.causal = true;\nstd::cout << options.causal;", "1")

    def test_a_cell_magic_is_a_call(self):
        self.prints("void twice_cell(const std::string& words, const std::string& text, const std::string& source) {\n"
                    "  std::cout << '[' << words << '|' << text << '|' << source.substr(0, 5) << ']';\n}", "")
        self.prints('%%twice a b \n)cell" "x" {\n  int ö;', '[a b|)cell" "x" {\n  int ö;|cell[]')
        self.prints("%%twice", "[||cell[]")
        text = self.fails("%%thrice", "CompileError", "%%thrice was asked for, but there is no function thrice_cell")
        self.assertEqual(text, {"stdout": "", "stderr": ""})

    def test_what_is_for_python(self):
        for cell in ("%pip install x", "!ls", "!ls -l"):
            text = self.fails(cell, "CompileError", f"{cell[:3]}")
            self.assertEqual(text, {"stdout": "", "stderr": ""})
        self.prints("bool off = false;\n!off", "(bool) true\n")
        self.prints("!off", "(bool) true\n")

    def test_a_line_of_a_cell(self):
        self.prints("#include <source_location>\nauto here = std::source_location::current();  // here\n"
                    "std::cout << nb::line_of(here.file_name(), here.line());",
                    "auto here = std::source_location::current();  // here")
        self.prints('std::cout << nb::line_of("cell[0]", 1) << nb::line_of(here.file_name(), 99);', "")

    def test_the_next_cell(self):
        reply = self.client.execute_interactive('nb::next_cell("int a;\\nint b;");', timeout=60)
        expected = {"source": "set_next_input", "text": "int a;\nint b;", "replace": False}
        self.assertEqual(reply["content"]["payload"], [expected])
        self.assertEqual(self.client.execute_interactive("int c;", timeout=60)["content"]["payload"], [])

    def test_is_complete(self):
        for code, status in (("f(", "incomplete"), ("f()", "complete")):
            message = self.client.is_complete(code)
            reply = self.client.get_shell_msg(timeout=30)
            while reply["parent_header"].get("msg_id") != message:
                reply = self.client.get_shell_msg(timeout=30)
            self.assertEqual(reply["content"]["status"], status)


if __name__ == "__main__":
    unittest.main()
