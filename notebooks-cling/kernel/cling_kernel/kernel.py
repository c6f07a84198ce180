"""The Jupyter kernel. A piece that does not compile, throws, aborts or is interrupted ends its cell with an error."""
import json
import re

from ipykernel.kernelbase import Kernel

from . import cells
from .interpreter import Interpreter, words_of_signal
from .output import Output

# How Cling prints an exception, piece by piece, the last that a cell has to say.
_COMPILATION_FAILED = re.compile(r"^compilation failed(?:: | with |$)(.*)", re.MULTILINE | re.DOTALL)


class ClingKernel(Kernel):
    implementation, implementation_version = "cling", "1"
    banner = "C++20 (Cling)"
    language_info = {
        "name": "c++",
        "version": "20",
        "mimetype": "text/x-c++src",
        "codemirror_mode": "text/x-c++src",
        "file_extension": ".cpp",
        "pygments_lexer": "cpp",
    }

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._request, self._silent, self._payload, self._has_thrown = None, False, [], False
        self._output = Output(self._send_text, self._send_shown)
        self._output.start()
        self._interpreter = Interpreter()

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        self._request, self._silent = self.get_parent(), silent
        self._output.errors.clear()
        self._payload, self._has_thrown = [], False
        source = f"cell[{self.execution_count}]"
        self._interpreter.remember(source, code)
        if refused := cells.refusal(code, self._interpreter.knows):
            return self._failed("CompileError", refused, code)
        outcome, piece = Interpreter.DONE, None
        for piece in cells.pieces(cells.without_magic(code, source)):
            outcome = self._interpreter.run(piece, source)
            if outcome != Interpreter.DONE:
                break
        self._output.sync()
        if outcome == Interpreter.DONE:
            reply = {"execution_count": self.execution_count, "payload": self._payload, "user_expressions": {}}
            return {**reply, "status": "ok"}
        name, value = self._error(outcome, "".join(self._output.errors))
        if code.startswith("%%"):
            return self._failed(name, value, code)
        return self._failed(name, value, piece.text, f"{source}, in what begins in line {piece.line}:")

    def do_is_complete(self, code):
        is_open = cells.is_open(cells.without_magic(code, ""))
        return {"status": "incomplete", "indent": "  "} if is_open else {"status": "complete"}

    def _failed(self, name, value, text, *where):
        """Shows the error, with what of the cell it came from; the reply."""
        error = {"ename": name, "evalue": value, "traceback": [f"\x1b[31m{name}\x1b[0m: {value}", *where, text[:400]]}
        self._send("error", error)
        return {"execution_count": self.execution_count, "status": "error", **error}

    def _error(self, outcome, errors):
        """What it is called, and what it says."""
        if outcome == Interpreter.BY_SIGNAL + 2:
            return "KeyboardInterrupt", "stopped"
        if outcome > Interpreter.BY_SIGNAL:
            return "Signal", words_of_signal(outcome)
        if outcome == Interpreter.UNBALANCED:
            return "CompileError", "a bracket is open"
        if thrown := _COMPILATION_FAILED.search(errors):
            return "Exception", thrown.group(1).strip()
        said = re.search(r"(?:error|unresolved)[^\n]*", errors)
        return "CompileError", said.group() if said else "see what the compiler says above"

    def _send(self, kind, content):
        if not self._silent:
            self.session.send(self.iopub_socket, kind, content, parent=self._request, ident=self._topic(kind))

    def _send_text(self, name, text):
        if name == "stderr":
            thrown = _COMPILATION_FAILED.search(text)
            text = "" if self._has_thrown else text[: thrown.start()] if thrown else text
            self._has_thrown = self._has_thrown or bool(thrown)
        else:
            text = re.sub(r"^\(nb::\w+( &)?\) \n", "", text, flags=re.MULTILINE)  # Cling names a shown value's type
        if text:
            self._send("stream", {"name": name, "text": text})

    def _send_shown(self, mime, data):
        if mime == "clear":
            return self._send("clear_output", {"wait": True})
        if mime == "next cell":
            return self._payload.append({"source": "set_next_input", "text": data, "replace": False})
        bundle = json.loads(data) if mime == "bundle" else {mime: data}
        self._send("display_data", {"data": bundle, "metadata": {}, "transient": {}})
