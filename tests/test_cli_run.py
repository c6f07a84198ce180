#!/usr/bin/env python3
"""The command line's contract: what it refuses and how, and all of `run`.

Values are compared with plain Python written here, sums with the sums of their parts.
"""
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # the sources stay as they are
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from command_line import APP, ROOT, CommandLine, attention, drawn, load, npy_bytes, save  # noqa: E402

COMMANDS = ["tour", "run", "why", "diff", "theorem2", "probe", "step", "trace", "verify", "bench", "notebooks",
            "pages", "test"]
STAGES = ["01", "02", "03", "04"]


class Refusals(CommandLine):
    def test_commands(self):
        self.refused([], "no command", *COMMANDS)
        self.refused(["attention"], '"attention"', *COMMANDS)
        self.refused(["--json"], '"--json"', *COMMANDS)
        self.refused(["test", "--quick"], "./flashsteps test")
        self.refused(["notebooks"], "./flashsteps notebooks")
        self.refused(["pages"], "./flashsteps pages")

    def test_arguments(self):
        self.refused(["run"], "STAGE")
        self.refused(["run", "03", "--frobnicate"], "--frobnicate", "run --help")
        self.refused(["run", "03", "04"], "04")
        self.refused(["run", "03", "--n"], "--n")
        self.refused(["run", "03", "--n", "12", "--n", "13"], "--n")
        self.refused(["run", "03", "--n", "12\n13"], "--n")
        for text in ("abc", "", "1.5", "1e3", "0x10", " 5", "5 "):
            self.refused(["run", "03", "--n", text], "--n", "whole number")
        self.refused(["run", "03", "--n", "9223372036854775808"], "--n", "64 bits")
        self.refused(["run", "03", "--seed", "-1"], "--seed")
        for option in ("--scale", "--softcap", "--dropout"):
            for text in ("x", "", "nan", "inf", "1e999"):
                self.refused(["run", "03", option, text], option, "finite number")
        for option in ("--q", "--out", "--sram", "--window", "--example"):
            self.refused(["run", "03", option, ""], option, "nothing")

    def test_stages(self):
        self.refused(["run", "08"], "08", "03_online_softmax")
        self.refused(["run", ""], "stage", "03_online_softmax")
        for stage in ("6", "06f", "fa4_rescaling"):
            self.refused(["run", stage], stage, "waits for")
        for stage in ("03a", "online_softmax/a", "04b", "03_online_softmax/x"):
            self.refused(["run", stage], stage, "without letters")
        for stage in ("05x", "05/", "fa2_partitioning/x", "05_fa2_partitioning/b_loop_swap"):
            self.refused(["run", stage], stage, "has the letters a_loop_swap, b_split_q_warps")
        self.refused(["run", "05c"], "05_fa2_partitioning/c_swizzle", "kernels alone", "--on vgpu")
        for stage in ("02", "03"):
            self.refused(["run", stage, "--backward"], stage, "04_recomputed_backward")
        for stage in ("05b", "05e"):
            self.refused(["run", stage, "--backward"], stage[:2], "only a forward pass; take stage 05_fa2_partitioning")

    def test_waits(self):
        for option in ("--cu-seqlens-q", "--cu-seqlens-k", "--page-table", "--page-size", "--seqlens", "--append-k",
                       "--append-v", "--rotary", "--l2"):
            self.refused(["run", "03", option, "16"], option, "later part of the work")
        self.refused(["run", "05", "--splits", "0"], "--splits 0", "1 or more")
        self.refused(["run", "05", "--splits", "x"], "--splits")
        for stage in ("03", "05a", "05b"):
            self.refused(["run", stage, "--splits", "2"], "splits", "take stage 05_fa2_partitioning/e_split_kv")
        for stage in ("03", "05a", "05"):
            self.refused(["run", stage, "--warps", "split-q"], "warps", "take stage 05_fa2_partitioning/b_split_q_warps")
        self.refused(["run", "05b", "--warps", "split-v"], "split-v", "split-q or split-k")
        self.refused(["run", "03", "--on", "tpu"], "tpu", "cpu, vgpu or gpu")
        self.refused(["run", "03", "--dtype", "fp8"], "fp8", "stage 06")
        self.refused(["run", "03", "--dtype", "int8"], "int8")

    def test_sizes(self):
        for option in ("--heads", "--kv-heads", "--d", "--dv"):
            self.refused(["run", "03", option, "0"], "0", "1 or more")
        for option in ("--n", "--nk", "--batch", "--heads"):
            self.refused(["run", "03", option, "-1"], "-1")
        self.refused(["run", "03", "--heads", "3", "--kv-heads", "2"], "3", "2", "divides")
        for option in ("--n", "--batch", "--heads", "--d"):
            self.refused(["run", "03", option, "9223372036854775807"])
            self.refused(["run", "03", option, "100000000000", "--count-only"])
        self.refused(["run", "03", "--n", "1000000000", "--nk", "1"], "bytes of memory")
        self.refused(["run", "01", "--n", "1000000"], "bytes of memory", "--count-only")
        self.refused(["run", "03", "--n", "0", "--batch", "100000000000"], "bytes of memory")

    def test_machine(self):
        for br, bc in ((["--br", "4"], []), ([], ["--bc", "4"])):
            self.refused(["run", "03", *br, *bc], "together")
        for bad in ("0", "-4", "99999999999"):
            self.refused(["run", "03", "--br", bad, "--bc", "4"], "--br", bad)
            self.refused(["run", "03", "--br", "4", "--bc", bad], "--bc", bad)
        self.refused(["run", "01", "--br", "4", "--bc", "4"], "01_materialized", "no tiles")
        self.refused(["run", "03", "--br", "512", "--bc", "512", "--budget", "strict"], "bytes")
        self.refused(["run", "03", "--budget", "generous"], "generous")
        self.refused(["run", "03", "--sram", "512"], "4d")
        for text in ("64furlongs", "KiB", "-1", "0", "1.5KiB", "99999999999GiB", "64 K iB"):
            self.refused(["run", "03", "--sram", text], "--sram")

    def test_attention_options(self):
        for text in ("16", "1,2,3", ",", "a,b", "1.0,2", "9223372036854775808,0", "1,"):
            self.refused(["run", "03", "--window", text], "--window")
        for p in ("1", "1.5", "-0.1"):
            self.refused(["run", "03", "--dropout", p], "--dropout", p)
        self.refused(["run", "03", "--softcap", "-1"], "--softcap")
        self.refused(["run", "03", "--scale", "1e300"], "fp32")
        self.refused(["run", "03", "--softcap", "1e-300"], "fp32")
        self.refused(["run", "04", "--first-touch"], "first-touch", "03_online_softmax")

    def test_what_does_not_fit_together(self):
        files = self.save_qkv()
        self.refused(["run", "03", *files, "--n", "4"], "two ways")
        self.refused(["run", "03", *files, "--example", "hand"], "two ways")
        self.refused(["run", "03", "--d", "4", "--example", "hand"], "two ways")
        self.refused(["run", "03", "--example", "nothing"], "nothing", "hand", "minilm")
        self.refused(["run", "03", *files[:4]], "--q, --k and --v")
        for option in (["--check"], ["--out", "out"], ["--steps"]):
            self.refused(["run", "03", "--count-only", *option], option[0], "--count-only")
        self.refused(["run", "03", "--steps", "--json", "--example", "hand"], "--steps", "--json")
        self.refused(["run", "03", "--steps"], "--steps", "--example hand")
        save(self.folder / "do.npy", drawn(4, 2))
        self.refused(["run", "03", *files, "--dout", "do.npy"], "--dout", "--backward")
        save(self.folder / "blocks.npy", ((1, 1), [1]), "|u1")
        self.refused(["run", "03", *files, "--block-mask", "blocks.npy"], "--br and --bc")

    def test_array_files(self):
        files = self.save_qkv()
        run = ["run", "03", *files]
        array = drawn(4, 2)
        broken = {
            "Fortran": npy_bytes(array, fortran=True),
            "big-endian": npy_bytes(array, ">f4"),
            "|O": npy_bytes(array, "|O"),
            "0-dimensional": npy_bytes(((), [1.0])),
            "real numbers": npy_bytes(((4, 2), [1] * 8), "<i4"),
            "cut short": npy_bytes(array)[:-1],
            "within its header": npy_bytes(array)[:40],
            "follow its last element": npy_bytes(array) + b"x",
            "not a .npy file": b"hello",
            "[B,H,N,d]": npy_bytes(((8,), array[1])),
            "its shape is [1,1,1,4,2]": npy_bytes(((1, 1, 1, 4, 2), array[1])),
            "needs more bytes": npy_bytes(array, shape=(4, 2**62)),
            "near": b"\x93NUMPY\x01\x00\x06\x00{'des'",
        }
        for word, content in broken.items():
            (self.folder / "q.npy").write_bytes(content)
            self.refused([*run, "--out", "out"], "q.npy", word)
        (self.folder / "q.npy").unlink()
        self.refused(run, "q.npy", "no such file")
        (self.folder / "q.npy").mkdir()
        self.refused(run, "q.npy", "no such file")

    def test_shapes(self):
        cases = [  # q, k, v and the two shapes to be named
            ((4, 3), (4, 2), (4, 2), "[4,3]", "[4,2]"), ((4, 2), (5, 2), (4, 2), "[5,2]", "[4,2]"),
            ((4, 2), (1, 4, 2), (1, 4, 2), "[4,2]", "[1,4,2]"), ((2, 4, 2), (2, 4, 2), (1, 4, 2), "[2,4,2]", "[1,4,2]"),
            ((2, 1, 4, 2), (1, 1, 4, 2), (1, 1, 4, 2), "[2,1,4,2]", "[1,1,4,2]"),
            ((1, 1, 4, 2), (1, 1, 4, 2), (2, 1, 4, 2), "[1,1,4,2]", "[2,1,4,2]")]
        for q, k, v, *named in cases:
            self.refused(["run", "03", *self.save_qkv(q=q, k=k, v=v)], *named)
        files = self.save_qkv(q=(3, 4, 2), k=(2, 4, 2), v=(2, 4, 2))
        self.refused(["run", "03", *files], "3 query heads", "2 KV heads")
        self.refused(["run", "03", *self.save_qkv(q=(0, 4, 2), k=(0, 4, 2), v=(0, 4, 2))], "query heads")
        files = self.save_qkv(q=(2, 4, 2), k=(2, 5, 2), v=(2, 5, 3))
        save(self.folder / "do.npy", drawn(2, 4, 2))
        self.refused(["run", "04", *files, "--backward", "--dout", "do.npy"], "[2,4,2]", "[1,2,4,3]")
        save(self.folder / "a.npy", drawn(3))
        self.refused(["run", "03", *files, "--alibi", "a.npy"], "[3]", "[2]")
        save(self.folder / "a.npy", ((2,), [1, math.inf]))
        self.refused(["run", "03", *files, "--alibi", "a.npy"], "a.npy", "inf")
        for shape in ((5, 4), (4, 5, 1), (3, 4, 5), (2, 2, 4, 5), (20,)):
            save(self.folder / "m.npy", drawn(*shape))
            named = str(list(shape)).replace(" ", "")
            self.refused(["run", "03", *files, "--mask", "m.npy"], named, "[4,5]", "[2,4,5]")
        save(self.folder / "m.npy", ((4, 5), [0.0] * 19 + [-math.inf]))
        self.refused(["run", "03", *files, "--mask", "m.npy"], "19", "not added")
        save(self.folder / "m.npy", ((4, 5), [1] * 20), "<i8")
        self.refused(["run", "03", *files, "--mask", "m.npy"], "<i8")
        save(self.folder / "b.npy", ((2, 2), [1] * 4), "|u1")
        self.refused(["run", "03", *files, "--block-mask", "b.npy", "--br", "2", "--bc", "2"], "[2,2]", "[2,3]")

    def test_nonfinite(self):
        files = self.save_qkv(q=(2, 3, 2), k=(2, 3, 2), v=(2, 3, 2))
        for name, bad in (("q", math.nan), ("k", math.inf), ("v", -math.inf)):
            files = self.save_qkv(q=(2, 3, 2), k=(2, 3, 2), v=(2, 3, 2))
            shape, values = drawn(2, 3, 2)
            values[9] = values[11] = bad
            save(self.folder / f"{name}.npy", (shape, values))
            self.refused(["run", "03", *files, "--out", "out"], f"{name}[0,1,1,1]", str(bad), "--allow-nonfinite")
        files = self.save_qkv()
        save(self.folder / "v.npy", ((4, 2), [1, 2, 3, 4, 5, 70000, 7, 8]))
        self.refused(["run", "03", *files, "--dtype", "fp16"], "fp16", "v[0,0,2,1]", "bf16")
        save(self.folder / "q.npy", ((4, 2), [300.0] * 8))
        save(self.folder / "k.npy", ((4, 2), [300.0] * 8))
        save(self.folder / "v.npy", drawn(4, 2))
        self.refused(["run", "01", *files, "--dtype", "fp16", "--scale", "1"], "65504", "03_online_softmax")

    def test_output_folder(self):
        (self.folder / "file").write_text("x")
        self.refused(["run", "03", "--n", "4", "--out", "file"], "file", "not a directory")
        self.refused(["run", "03", "--n", "4", "--out", "file/below"], "file/below")
        self.refused(["run", "03", "--n", "4", "--out", "/proc/flashsteps"], "/proc/flashsteps")
        (self.folder / "out/lse.npy").mkdir(parents=True)
        (self.folder / "out/o.npy").write_text("old")
        self.refused(["run", "03", "--n", "4", "--out", "out"], "out/lse.npy")

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([APP, "run", "03", "--n", "4"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Aflashsteps: [^\n]+\n\Z")


class Help(CommandLine):
    def test_help(self):
        text = self.result("--help")
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} +\S")
            self.assertGreater(len(self.result(command, "--help")), 60)
        text = self.result("run", "--help")
        for option in ("--q", "--kv-heads", "--sram", "--window", "--first-touch", "--page-table", "--out", "KiB"):
            self.assertIn(option, text)
        self.assertRegex(self.result("--version"), r"\Aflashsteps \d+\.\d+\.\d+\n\Z")

    def test_reader_that_leaves(self):
        for args in (["run", "03", "--n", "600", "--br", "1", "--bc", "1", "--json"], ["--help"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([APP, *args], stdout=writer, stderr=subprocess.PIPE, timeout=60)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (0, b""))


class Json(CommandLine):
    def sums(self, ledger):
        hbm = ledger["hbm"]
        total = sum(hbm["read"].values()) + sum(hbm["write"].values()) + 2 * sum(hbm["rmw"].values())
        self.assertEqual(hbm["elements"], total)
        self.assertEqual(hbm["bytes"], sum(hbm["bytes_by_tensor"].values()))
        self.assertEqual(sum(line["read"] + line["write"] for line in ledger["lines"]), total)
        self.assertEqual(sum(line["read"] for line in ledger["lines"]),
                         sum(hbm["read"].values()) + sum(hbm["rmw"].values()))
        for line in ledger["lines"]:
            source = (ROOT / line["file"]).read_text().splitlines()
            self.assertEqual(line["text"], source[line["line"] - 1].strip())

    def judge(self, document, backward):
        """The schema, the sums, and the closed form."""
        self.validate("run", document)
        for part in (document["forward"], document["backward"]) if backward else (document,):
            self.sums(part["ledger"])
            self.assertTrue(part["closed_form"]["equal"])
            self.assertEqual(part["closed_form"]["elements"], part["ledger"]["hbm"]["elements"])

    def test_run(self):
        save(self.folder / "a.npy", drawn(4))
        save(self.folder / "m.npy", ((33, 40), [(i * 7 + 3) % 5 != 0 for i in range(33 * 40)]), "|b1")
        save(self.folder / "b.npy", ((5, 5), [n % 3 > 0 for n in range(25)]), "|u1")
        heads = ["--heads", "4", "--kv-heads", "2"]
        tiles = ["--br", "8", "--bc", "8"]
        spread = [[], ["--causal"], ["--window", "3,1"], [*heads, "--dv", "5"],
                  ["--alibi", "a.npy", *heads, "--softcap", "2"],
                  ["--mask", "m.npy", "--dropout", "0.25"], ["--dtype", "fp64"], ["--dtype", "fp16"],
                  ["--dtype", "bf16", *heads], ["--count-only"], ["--n", "0"], ["--nk", "0"], ["--batch", "0"]]
        for stage, options in itertools.product(STAGES, spread):
            unset = [pair for pair in (("--n", "33"), ("--nk", "40"), ("--d", "8")) if pair[0] not in options]
            sizes = list(itertools.chain(*unset))
            for backward in ([], ["--backward"])[:2 if stage in ("01", "04") else 1]:
                check = [] if "--count-only" in options else ["--check"]
                args = ["run", stage, *sizes, *options, *backward, *check, "--sram", "4KiB"]
                with self.subTest(args=args):
                    self.judge(self.json(*args), backward)
        for stage, options in itertools.product(STAGES[1:], ([], ["--block-mask", "b.npy"], ["--causal"])):
            args = ["run", stage, "--n", "33", "--nk", "40", "--d", "8", *tiles, *options, "--check"]
            with self.subTest(args=args):
                document = self.json(*args)
                self.judge(document, False)
                self.assertEqual(document["tiles"], {"br": 8, "bc": 8})
        self.judge(self.json("run", "3", "--first-touch", "--example", "hand", "--check"), False)
        self.judge(self.json("run", "04", "--example", "minilm", "--backward", "--budget", "strict"), True)

    def test_schema_is_strict(self):
        document = self.json("run", "03", "--n", "8", "--d", "4", "--check")
        for change in (lambda j: j.update(extra=1), lambda j: j.pop("ledger"), lambda j: j.update(seconds="fast"),
                       lambda j: j["ledger"]["hbm"]["read"].update(Z=1), lambda j: j.update(closed_form=None),
                       lambda j: j.update(why="not"), lambda j: j["check"]["o"].update(error="NaN"),
                       lambda j: j.update(backward=j["ledger"])):
            changed = json.loads(json.dumps(document))
            change(changed)
            self.assertFalse(self.validator("run").is_valid(changed))

    def test_contents(self):
        document = self.json("run", "03", "--n", "512", "--causal")
        self.assertEqual((document["stage"], document["on"], document["dtype"]), ("03_online_softmax", "cpu", "fp32"))
        self.assertEqual(document["visible_pairs"], 512 * 513 // 2)
        self.assertEqual(document["tiles"], {"br": 64, "bc": 64})
        ledger = document["ledger"]
        visits = sum(512 - 64 * j for j in range(8))  # query rows of the visited tiles
        self.assertEqual(ledger["hbm"]["read"]["Q"], visits * 64)
        self.assertEqual(ledger["hbm"]["read"]["K"], 512 * 64)
        self.assertEqual(ledger["flops"]["matmul"], 4 * visits * 64 * 64)
        self.assertEqual(ledger["extra_hbm"], {"elements": 1024, "bytes": 4096})
        self.assertGreater(ledger["sram"]["peak_bytes"], 65536)  # paper: over M
        self.assertLessEqual(self.json("run", "03", "--budget", "strict")["ledger"]["sram"]["peak_bytes"], 65536)
        materialized = self.json("run", "01", "--n", "64", "--d", "16")
        self.assertIsNone(materialized["tiles"])
        strict = self.json("run", "01", "--n", "64", "--d", "16", "--sram", "1KiB", "--budget", "strict")
        self.assertIsNone(strict["problem"]["budget"])  # 01 takes the SRAM that it needs
        self.assertEqual(materialized["ledger"]["hbm"]["elements"], 4 * 64 * 64 + 4 * 64 * 16)

    def test_visible_pairs_of_masks(self):
        flags = [n % 3 == 0 for n in range(2 * 5 * 6)]
        save(self.folder / "m.npy", ((2, 5, 6), flags), "|b1")
        sees = sum(flags[(h * 5 + i) * 6 + j] and j <= i + 1 for h in range(2) for i in range(5) for j in range(6))
        sizes = ["--n", "5", "--nk", "6", "--heads", "2", "--batch", "3"]
        document = self.json("run", "03", *sizes, "--mask", "m.npy", "--causal")
        self.assertEqual(document["visible_pairs"], 3 * sees)

    def test_sram_units_f39(self):
        """One M typed in several ways gives the same blocks; 16-bit elements are twice as many."""
        def blocks(*args):
            return self.json("run", "03", "--n", "300", "--count-only", *args)["tiles"]
        same = [blocks("--sram", text) for text in ("64KiB", "64KB", "64 KB", "64kb", "65536", "65536B", "16384el")]
        self.assertEqual(same, [{"br": 64, "bc": 64}] * len(same))
        self.assertEqual(blocks(), same[0])
        self.assertEqual(blocks("--dtype", "bf16", "--sram", "64KB"), {"br": 64, "bc": 128})
        self.assertEqual(blocks("--dtype", "bf16", "--sram", "16384el"), same[0])
        self.assertEqual(blocks("--sram", "1MiB"), blocks("--sram", "1048576"))

    def test_count_only_counts_the_same(self):
        for stage, backward in (("01", ["--backward"]), ("02", []), ("03", []), ("04", ["--backward"])):
            heads = ["--heads", "4", "--kv-heads", "2"]
            args = ["run", stage, "--n", "50", *heads, "--dtype", "bf16", "--causal", *backward]
            counted, computed = self.json(*args, "--count-only"), self.json(*args)
            self.assertEqual(counted.pop("problem")["count_only"], True)
            computed.pop("problem"), computed.pop("seconds"), counted.pop("seconds")
            self.assertEqual(counted, computed)


class Outputs(CommandLine):
    def test_values_and_shapes(self):
        shapes = [((5, 3), (7, 3), (7, 2)), ((4, 5, 3), (2, 7, 3), (2, 7, 2)),
                  ((2, 4, 5, 3), (2, 2, 7, 3), (2, 2, 7, 2))]
        for (q, k, v), stage, (dtype, descr) in itertools.product(shapes, STAGES, (("fp32", "<f4"), ("fp64", "<f8"))):
            with self.subTest(q=q, stage=stage, dtype=dtype):
                backward = stage in ("01", "04")
                files = self.save_qkv(q=q, k=k, v=v, descr=descr)
                o = (*q[:-1], v[-1])
                save(self.folder / "do.npy", drawn(*o, seed=4), "<f2")
                out = f"{stage}-{dtype}-{len(q)}"
                grad = ["--backward", "--dout", "do.npy"] if backward else []
                self.result("run", stage, *files, *grad, "--causal", "--dtype", dtype, "--out", out, "--check")
                four = [((1,) * (4 - len(s)) + s, drawn(*s, seed=n)[1]) for n, s in ((1, q), (2, k), (3, v), (4, o))]
                wanted = attention(*four[:3], four[3] if backward else None, lambda b, h, i, j: j <= i + 2)
                axes = {"o": o, "lse": q[:-1], "dq": q, "dk": k, "dv": v}
                names = list(axes) if backward else ["o", "lse"]
                self.assertEqual(sorted(os.listdir(self.folder / out)), sorted(f"{n}.npy" for n in names))
                for name in names:
                    got_descr, shape, values = load(self.folder / out / f"{name}.npy")
                    self.assertEqual((got_descr, shape), (descr, axes[name]))
                    self.near(values, wanted[name], 1e-12 if dtype == "fp64" else 2e-5)

    def test_masks(self):
        flags = [(n * 5 + 1) % 4 != 0 for n in range(2 * 4 * 6)]
        flags[6:12] = [False] * 6  # row 1 of head 0 sees nothing
        for descr, stage in itertools.product(("|b1", "|u1", "<f4"), STAGES):
            files = self.save_qkv(q=(2, 4, 3), k=(2, 6, 3), v=(2, 6, 3))
            save(self.folder / "m.npy", ((2, 4, 6), flags), descr)
            self.result("run", stage, *files, "--mask", "m.npy", "--scale", "0.5", "--out", "out")
            q, k, v = (((1, *s), drawn(*s, seed=n)[1]) for n, s in ((1, (2, 4, 3)), (2, (2, 6, 3)), (3, (2, 6, 3))))
            wanted = attention(q, k, v, sees=lambda b, h, i, j: flags[(h * 4 + i) * 6 + j], scale=0.5)
            for name in ("o", "lse"):
                self.near(load(self.folder / f"out/{name}.npy")[2], wanted[name])
        self.assertEqual(load(self.folder / "out/lse.npy")[2][1], -math.inf)

    def test_window_spellings(self):
        def o(*args):
            self.result("run", "03", "--n", "6", "--d", "3", "--out", "out", *args)
            return load(self.folder / "out/o.npy")[2]
        self.assertEqual(o("--window", "-1,0"), o("--causal"))
        self.assertEqual(o("--window=-1,0"), o("--window", "9223372036854775807,0"))
        self.assertEqual(o("--window=-1,100"), o("--window", "-9223372036854775808,9223372036854775807"))
        self.assertNotEqual(o("--window", "2,0"), o("--window=-1,0"))

    def test_drawn_dout(self):
        problem = ["--n", "6", "--d", "4", "--backward"]
        self.result("run", "04", *problem, "--seed", "7", "--out", "a")
        self.assertIn("do.npy", os.listdir(self.folder / "a"))
        self.result("run", "04", *problem, "--seed", "7", "--dout", "a/do.npy", "--out", "b")
        self.assertNotIn("do.npy", os.listdir(self.folder / "b"))
        self.assertEqual(load(self.folder / "a/dq.npy"), load(self.folder / "b/dq.npy"))
        self.assertEqual(load(self.folder / "a/o.npy")[1], (1, 1, 6, 4))
        self.result("run", "04", *problem, "--seed", "8", "--out", "b")
        self.assertNotEqual(load(self.folder / "a/do.npy"), load(self.folder / "b/do.npy"))

    def test_empty(self):
        for stage in STAGES:
            backward = ["--backward"] if stage in ("01", "04") else []
            self.result("run", stage, "--batch", "0", "--n", "3", *backward, "--out", "none", "--check")
            self.assertEqual(load(self.folder / "none/o.npy")[1:], ((0, 1, 3, 64), []))
            self.result("run", stage, "--n", "0", "--nk", "2", "--d", "2", *backward, "--out", "none", "--check")
            self.assertEqual(load(self.folder / "none/lse.npy")[1:], ((1, 1, 0), []))
            if backward:
                self.assertEqual(load(self.folder / "none/dk.npy")[2], [0.0] * 4)
            self.result("run", stage, "--n", "2", "--nk", "0", "--d", "2", *backward, "--out", "keyless", "--check")
            self.assertEqual(load(self.folder / "keyless/o.npy")[2], [0.0] * 4)
            self.assertEqual(load(self.folder / "keyless/lse.npy")[2], [-math.inf] * 2)

    def test_nonfinite_rows(self):
        files = self.save_qkv(q=(6, 2), k=(6, 2), v=(6, 2))
        for stage in STAGES:
            self.result("run", stage, *files, "--causal", "--out", "clean")
            shape, values = drawn(6, 2, seed=2)
            values[2 * 3] = math.nan  # key 3: rows 3, 4, 5 see it
            save(self.folder / "bad.npy", (shape, values))
            self.result("run", stage, "--q", "q.npy", "--k", "bad.npy", "--v", "v.npy", "--causal", "--allow-nonfinite",
                        "--check", "--json", "--out", "marked")
            clean, marked = (load(self.folder / f"{name}/o.npy")[2] for name in ("clean", "marked"))
            self.assertEqual(marked[:6], clean[:6])
            self.assertTrue(all(math.isnan(x) for x in marked[6:]))

    def test_replaced_as_one(self):
        self.result("run", "03", "--n", "3", "--out", "deep/er")
        (self.folder / "deep/er/notes.txt").write_text("mine")
        before = (self.folder / "deep/er/o.npy").read_bytes()
        self.result("run", "03", "--n", "3", "--seed", "5", "--out", "deep/er")
        self.assertEqual(sorted(os.listdir(self.folder / "deep/er")), ["lse.npy", "notes.txt", "o.npy"])
        self.assertNotEqual((self.folder / "deep/er/o.npy").read_bytes(), before)

    def test_npy_versions(self):
        files = self.save_qkv()
        self.result("run", "03", *files, "--out", "1")
        for version in (2, 3):
            save(self.folder / "q.npy", drawn(4, 2, seed=1), version=version)
            self.result("run", "03", *files, "--out", str(version))
            self.assertEqual(load(self.folder / f"{version}/o.npy"), load(self.folder / "1/o.npy"))


class Report(CommandLine):
    def test_names_of_a_stage(self):
        for name in ("3", "03", "online_softmax", "03_online_softmax"):
            self.assertEqual(self.json("run", name, "--n", "8")["stage"], "03_online_softmax")

    def test_report(self):
        text = self.result("run", "03", "--n", "512", "--check")
        for words in ("902,144 elements", "3,608,576", "equals it", "1.27 M", "M = 16,384 elements = 65,536 bytes",
                      "3Nd + 2N + Tc·N(3d+4)", "stages/03_online_softmax/forward.hpp", "FLOPs", "extra HBM",
                      "fp64 oracle"):
            self.assertIn(words, text)
        self.assertRegex(self.result("run", "01", "--n", "64"), r"needs [\d,]+ bytes")

    def test_letters(self):
        for name in ("05b", "5b", "fa2_partitioning/b_split_q_warps", "05_fa2_partitioning/b", "05/b_split_q_warps"):
            self.assertEqual(self.json("run", name, "--n", "8")["stage"], "05_fa2_partitioning/b_split_q_warps")
        main = self.json("run", "5", "--n", "64", "--d", "8", "--sram", "2KiB", "--backward", "--check")
        self.assertEqual(main["stage"], "05_fa2_partitioning")
        for direction, letter in (("forward", "e"), ("backward", "a")):
            of_letter = self.json("run", "05" + letter, "--n", "64", "--d", "8", "--sram", "2KiB",
                                  *["--backward"] * (direction == "backward"))
            self.assertEqual(main[direction]["ledger"], of_letter.get(direction, of_letter)["ledger"])

    def test_splits_warps_and_turns(self):
        problem = ("run", "05", "--n", "24", "--nk", "90", "--d", "8", "--sram", "2KiB", "--causal", "--check")
        for splits in ("1", "2", "3", "7", "1000"):
            document = self.json(*problem, "--splits", splits)
            self.assertEqual(document["problem"]["splits"], int(splits))
            self.assertTrue(document["closed_form"]["equal"])
            self.assertEqual("partial_O" in document["ledger"]["hbm"]["read"], splits != "1")
        plain, in_turn = (self.json(*problem, "--backward", *option)["backward"] for option in ([], ["--deterministic"]))
        self.assertTrue(in_turn["closed_form"]["equal"])
        self.assertNotIn("turn", plain["ledger"]["hbm"]["read"])
        self.assertGreater(in_turn["ledger"]["hbm"]["read"]["turn"], 0)
        for warps, some in (("split-q", False), ("split-k", True)):
            document = self.json("run", "05b", "--n", "64", "--d", "8", "--warps", warps, "--check")
            self.assertEqual(document["problem"]["warps"], warps)
            between = document["ledger"]["sram"]["between_warps"]
            self.assertEqual(between["read"] > 0, some)
            self.assertIn("of each other's", self.result("run", "05b", "--n", "64", "--d", "8", "--warps", warps))
        self.assertNotIn("between_warps", self.json("run", "05a", "--n", "8")["ledger"]["sram"])

    def test_accepted_in_silence(self):
        plain = self.json("run", "03", "--n", "8")
        for option in (["--deterministic"], ["--splits", "1"], ["--on", "cpu"], ["--dropout", "0"], ["--softcap", "0"]):
            self.assertEqual(self.json("run", "03", "--n", "8", *option)["ledger"], plain["ledger"])
        self.result("run", "03", "--n", "8", "--scale", "0", "--check")

    def test_example_by_hand(self):
        document = self.json("run", "03", "--example", "hand", "--check")
        self.assertEqual(document["tiles"], {"br": 2, "bc": 2})
        self.assertEqual(document["problem"]["scale"], 1)
        self.assertIsNone(self.json("run", "01", "--example", "hand", "--check")["tiles"])
        given = self.json("run", "03", "--example", "hand", "--br", "1", "--bc", "4")
        self.assertEqual(given["tiles"], {"br": 1, "bc": 4})
        steps = self.result("run", "03", "--example", "hand", "--steps")
        self.assertEqual(steps, self.result("run", "03", "--example", "hand", "--steps"))
        self.assertIn("store  O rows 2-3", steps)


if __name__ == "__main__":
    unittest.main()
