"""What a cell prints, as it comes: from cout, printf and shared libraries alike, and what nb.hpp shows."""
import codecs
import os
import re
import select
import threading

_FRAME = re.compile(rb"\x1b\]mime;([^;\x07]*);(\d+)\x07")  # then as many bytes: nb::display()
_SYNC = b"\x1b]sync\x07"


class _Stream:
    """One of the two descriptors: what has come in, undecoded."""

    def __init__(self, name, descriptor):
        self.name, self.descriptor = name, descriptor
        self.reader, writer = os.pipe()
        os.dup2(writer, descriptor)
        os.close(writer)
        self.bytes = b""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.is_read = threading.Event()  # up to the last sync()


class Output(threading.Thread):
    """Takes the place of descriptors 1 and 2. Calls on_text(stream's name, text) and on_shown(mime, data)."""

    LONGEST_TEXT = 1 << 16
    PATIENCE_S = 0.03

    def __init__(self, on_text, on_shown):
        super().__init__(daemon=True)
        self._on_text, self._on_shown = on_text, on_shown
        self._streams = {s.reader: s for s in (_Stream("stdout", 1), _Stream("stderr", 2))}
        self._text, self._text_of = "", None  # joined as long as it is of one stream
        self.errors = []  # what went to stderr

    def run(self):
        while True:
            ready = select.select(list(self._streams), [], [], self.PATIENCE_S if self._text else None)[0]
            if not ready:
                self._flush()
            for reader in ready:
                stream = self._streams[reader]
                stream.bytes += os.read(reader, 1 << 16)
                while self._take(stream):
                    pass

    def sync(self):
        """Returns once everything printed so far was handed on."""
        for stream in self._streams.values():
            stream.is_read.clear()
            os.write(stream.descriptor, _SYNC)
        for stream in self._streams.values():
            stream.is_read.wait(10)

    def _take(self, stream):
        """Hands on text up to a frame, or a frame. False where more bytes must come first."""
        escape = stream.bytes.find(b"\x1b]")
        if escape != 0:
            end = escape if escape > 0 else len(stream.bytes) - stream.bytes.endswith(b"\x1b")
            self._add_text(stream, end)
            return escape > 0
        if stream.bytes.startswith(_SYNC):
            stream.bytes = stream.bytes[len(_SYNC) :]
            self._flush()
            stream.is_read.set()
            return True
        if frame := _FRAME.match(stream.bytes):
            end = frame.end() + int(frame.group(2))
            if len(stream.bytes) < end:
                return False
            self._flush()
            self._on_shown(frame.group(1).decode(), stream.bytes[frame.end() : end].decode("utf-8", "replace"))
            stream.bytes = stream.bytes[end:]
            return True
        starts = (b"\x1b]mime;", _SYNC)
        if len(stream.bytes) < 200 and any(s.startswith(stream.bytes[: len(s)]) for s in starts):
            return False  # of a frame that is not all here
        self._add_text(stream, 2)  # an escape of somebody else's
        return True

    def _add_text(self, stream, count):
        text = stream.decoder.decode(stream.bytes[:count])
        stream.bytes = stream.bytes[count:]
        if not text:
            return
        if stream.name == "stderr":
            self.errors.append(text)
        if stream.name != self._text_of or len(self._text) > self.LONGEST_TEXT:
            self._flush()
        self._text_of = stream.name
        self._text += text

    def _flush(self):
        if self._text:
            text, self._text = self._text, ""
            self._on_text(self._text_of, text)
