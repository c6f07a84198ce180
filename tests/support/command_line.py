"""What tests of the command line share: starting it, .npy files, and attention in plain Python."""
import itertools
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
APP = os.environ.get("FLASH_APP", str(ROOT / "build/cpu/flashsteps-app"))


# ---- .npy files: an array is (shape, flat list)

def size(shape):
    return math.prod(shape)


def npy_bytes(array, descr="<f4", fortran=False, version=1, shape=None):
    dims, values = array
    dims = dims if shape is None else shape
    code = {"f2": "e", "f4": "f", "f8": "d", "i4": "i", "i8": "q", "u1": "B", "b1": "?"}.get(descr[1:])
    data = struct.pack(("<>"[descr[0] == ">"]) + str(len(values)) + code, *values) if code else b"x" * 8
    header = repr({"descr": descr, "fortran_order": fortran, "shape": tuple(dims)}).encode()
    length_bytes = 2 if version == 1 else 4
    header += b" " * (-(8 + length_bytes + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(length_bytes, "little") + header + data


def save(path, array, *args, **named):
    pathlib.Path(path).write_bytes(npy_bytes(array, *args, **named))


def load(path):
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", "what is written is version 1"
    end = 10 + int.from_bytes(data[8:10], "little")
    assert end % 64 == 0
    header = eval(data[10:end], {})  # a Python literal of our own program
    assert not header["fortran_order"]
    code = {"<f4": "f", "<f8": "d"}[header["descr"]]
    count = size(header["shape"])
    assert len(data) == end + count * struct.calcsize(code)
    return header["descr"], header["shape"], list(struct.unpack(f"<{count}{code}", data[end:]))


def drawn(*shape, seed=1):
    """Multiples of 1/8: exact in fp16 too."""
    generator = random.Random(seed)
    return shape, [generator.randint(-16, 16) / 8 for _ in range(size(shape))]


# ---- plain attention, forward and backward; q [B,H,N,d] and so on

def attention(q, k, v, dout=None, sees=lambda b, h, i, j: True, scale=None):
    (B, H, N, d), (_, Hkv, Nk, _), dv = q[0], k[0], v[0][3]
    scale = 1 / math.sqrt(d) if scale is None else scale

    def row(a, b, h, i):
        at = ((b * a[0][1] + h) * a[0][2] + i) * a[0][3]
        return a[1][at:at + a[0][3]]

    def dot(x, y):
        return sum(a * b for a, b in zip(x, y))

    o, lse, dq = [], [], []
    dk, d_v = [0.0] * len(k[1]), [0.0] * len(v[1])
    for b, h, i in itertools.product(range(B), range(H), range(N)):
        g = h * Hkv // H
        keys = [j for j in range(Nk) if sees(b, h, i, j)]
        s = [scale * dot(row(q, b, h, i), row(k, b, g, j)) for j in keys]
        top = max(s, default=0)
        total = sum(math.exp(x - top) for x in s)
        p = [math.exp(x - top) / total for x in s]
        o_row = [sum(x * row(v, b, g, j)[c] for x, j in zip(p, keys)) for c in range(dv)]
        o += o_row
        lse.append(top + math.log(total) if keys else -math.inf)
        if dout is None:
            continue
        do_row = row(dout, b, h, i)
        D = dot(do_row, o_row)
        dq_row = [0.0] * d
        for x, j in zip(p, keys):
            ds = x * (dot(do_row, row(v, b, g, j)) - D) * scale
            base = (b * Hkv + g) * Nk + j
            for c in range(d):
                dq_row[c] += ds * row(k, b, g, j)[c]
                dk[base * d + c] += ds * row(q, b, h, i)[c]
            for c in range(dv):
                d_v[base * dv + c] += x * do_row[c]
        dq += dq_row
    return {"o": o, "lse": lse, "dq": dq, "dk": dk, "dv": d_v}


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *args):
        words = [str(a) for a in args]
        return subprocess.run([APP, *words], capture_output=True, text=True, cwd=self.folder, timeout=120)

    def result(self, *args):
        """Standard output of a command that succeeds, and says nothing on standard error."""
        done = self.start(*args)
        self.assertEqual((done.returncode, done.stderr), (0, ""), args)
        return done.stdout

    def json(self, *args):
        return json.loads(self.result(*args, "--json"), parse_constant=lambda word: self.fail(f"{word} is no JSON"))

    def files(self):
        """Everything in the folder: name → content, None for a folder."""
        paths = self.folder.rglob("*")
        return {str(p.relative_to(self.folder)): p.read_bytes() if p.is_file() else None for p in paths}

    def refused(self, args, *words):
        """Exit 2, one sentence with `words`, nothing else written anywhere."""
        with self.subTest(args=args):
            before = self.files()
            done = self.start(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Aflashsteps: [^\n]{20,}\n\Z")
            for machine_path in (str(ROOT), str(self.folder)):
                self.assertNotIn(machine_path, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertEqual(self.files(), before)

    def save_qkv(self, *, q=(4, 2), k=(4, 2), v=(4, 2), descr="<f4"):
        for name, shape, seed in (("q", q, 1), ("k", k, 2), ("v", v, 3)):
            save(self.folder / f"{name}.npy", drawn(*shape, seed=seed), descr)
        return ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]

    def near(self, got, wanted, tolerance=2e-5):
        self.assertEqual(len(got), len(wanted))
        for n, (a, b) in enumerate(zip(got, wanted)):
            self.assertTrue(a == b or abs(a - b) <= tolerance * max(1, abs(b)), f"element {n}: {a} for {b}")

    @staticmethod
    def validator(command):
        schema = json.loads((ROOT / f"docs/schema/{command}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def validate(self, command, document):
        errors = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in self.validator(command).iter_errors(document)]
        self.assertEqual(errors, [])
