"""Cling in this process."""
import ctypes
import os
import re
import signal
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE_PATH = "CLING_INCLUDE_PATH"  # of the environment: folders, with ':' between
SIGNALS = {
    signal.SIGABRT: "abort: an assert does not hold, or an exception was not caught",
    signal.SIGSEGV: "access of memory that is not there",
    signal.SIGFPE: "integer division by zero",
}


class Interpreter:
    DONE, FAILED, UNBALANCED, BY_SIGNAL = 0, 1, 99, 1000  # interpreter.hpp's Outcome

    def __init__(self):
        os.environ.setdefault("CPPYY_CRASH_QUIET", "1")
        os.environ.setdefault("CPPYY_API_PATH", "none")
        import cppyy

        self._cling = cppyy.gbl.gInterpreter
        for folder in [HERE, Path.cwd(), "/usr/include/eigen3", *os.environ.get(INCLUDE_PATH, "").split(":")]:
            if folder and Path(folder).is_dir():
                self._cling.AddIncludePath(str(folder))
        self._cling.Declare('#include "interpreter.hpp"')
        signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int)  # a call leaves Python's lock
        self._run = signature(cppyy.gbl.cling_kernel.address_of_run())
        self._cling.Declare('#include "nb.hpp"')
        self._global, self._nb = cppyy.gbl, cppyy.gbl.nb

    def remember(self, source, cell):
        """For those who show a line of the cell: nb::line_of(source, line)."""
        self._nb.remember(source, cell)

    def knows(self, name):
        """Is there a global variable, function or type of that name?"""
        return hasattr(self._global, name)

    def run(self, piece, source):
        """The outcome of a piece of the cell that diagnostics call `source`."""
        text, as_declaration = f'#line {piece.line} "{source}"\n{piece.text}', False
        if piece.kind == "directive":
            if re.match(r"#\s*(include|define|undef|if)", piece.text):
                text, as_declaration = text + "\n", True
            else:
                text = piece.text  # #pragma cling …
        elif piece.kind in ("definition", "binding"):
            # A template comes first, so that Cling takes what follows for no statement.
            text = f"template <int> struct cling_kernel_piece;\n{text}\n"
        elif piece.text.startswith("."):
            text = piece.text  # a command of Cling's
        return self._run(text.encode(), int(as_declaration))


def words_of_signal(outcome):
    number = outcome - Interpreter.BY_SIGNAL
    return SIGNALS.get(number, signal.Signals(number).name)
