#!/usr/bin/env python3
"""`bench`: rounds, tables, ratios, what is refused. What a GPU, other people's kernels and Nsight Compute do is
pretended."""
# label: full
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
SUPPORT = pathlib.Path(__file__).resolve().parent / "support"
sys.path.insert(0, str(SUPPORT))
from command_line import ROOT  # noqa: E402
from device import PretendedGpu  # noqa: E402

SIZES = ["--n", "64", "--batch", "2", "--heads", "2", "--kv-heads", "1"]


class Bench(PretendedGpu):
    def text(self, *args):
        return self.result("bench", *args)

    def document(self, *args):
        document = self.json("bench", *args)
        self.validate("bench", document)
        return document

    # ---- times

    def test_forward(self):
        sizes = [*SIZES, "--causal"]
        forward = self.document("01", "02", "03", "04", *sizes, "--out", "measured.json")
        self.assertEqual([row["stage"][:2] for row in forward["rows"]], ["01", "02", "03", "04"])
        self.assertEqual(forward["flops"], 4 * 64 * (64 * 65 // 2) * 4)
        for row in forward["rows"]:  # a launch is said to take a quarter of a second
            self.assertEqual((row["seconds"]["median"], row["launches"], row["sm_clock_mhz"]), (0.25, 1, 1500))
            self.assertAlmostEqual(row["tflops"], 4 * forward["flops"] * 1e-12, places=15)
            self.assertTrue(all(check["pass"] for check in row["check"].values()))
            self.assertAlmostEqual(row["gemm_share"], row["tflops"] / forward["gemm"]["tflops"])
        self.assertAlmostEqual(forward["gemm"]["tflops"], 2 * 8192**3 / 0.125 * 1e-12)
        backward = self.document("04", "01", *sizes, "--backward", "--rounds", "21", "--out", "measured.json")
        self.assertEqual([row["stage"][:2] for row in backward["rows"]], ["04", "01"])
        self.assertEqual((backward["flops"], backward["rounds"]), (2.5 * forward["flops"], 21))
        measured = json.loads((self.folder / "measured.json").read_text())
        self.validate("bench", measured)
        self.assertEqual(measured["runs"], [forward, backward])

    def test_text(self):
        text = self.text("03", *SIZES)
        for words in ("pretended GPU (sm_90)", "Median of 20 rounds", "not cleared", "TFLOP/s", "32 x 128", "1500",
                      "cuBLAS's 8192 x 8192 x 8192", "of GEMM"):
            self.assertIn(words, text)

    def test_all_stages(self):
        rows = self.document("--n", "32", "--batch", "1", "--heads", "1")["rows"]
        self.assertEqual([row["stage"][:2] for row in rows][:4], ["01", "02", "03", "04"])
        rows = self.document("--n", "32", "--batch", "1", "--heads", "1", "--backward")["rows"]
        self.assertEqual([row["stage"][:2] for row in rows][:2], ["01", "04"])

    def test_dtype(self):
        self.assertEqual(self.document("03", *SIZES)["problem"]["dtype"], "fp16")  # it takes no other
        self.assertEqual(self.document("03", *SIZES, "--dtype", "fp16")["problem"]["dtype"], "fp16")
        self.refused(["bench", "03", *SIZES, "--dtype", "bf16"], "bf16", "03_online_softmax", "fp16")

    def test_without_cublas(self):
        self.environment["FLASH_PRETENDED_CUBLAS"] = "0"
        document = self.document("03", *SIZES)
        self.assertIn("libcublas", document["gemm"]["why"])
        self.assertNotIn("gemm_share", document["rows"][0])
        self.assertIn("No share of the card's best: there is no libcublas", " ".join(self.text("03", *SIZES).split()))

    def test_what_does_not_fit_is_left_out(self):
        self.environment["FLASH_PRETENDED_BYTES"] = "310000"
        rows = self.document("01", "02", "03", "04", "--n", "250", "--batch", "1", "--heads", "1")["rows"]
        self.assertEqual(["seconds" in row for row in rows], [False, False, True, True])
        self.assertIn("S and P", rows[0]["why"])

    def test_nothing_that_is_wrong_is_timed(self):
        folder = pathlib.Path(self.environment["FLASH_KERNELS"])
        self.compile("wrong.cu", folder / "gpu/04_recomputed_backward_forward.so")
        done = self.start("bench", "03", "04", "--n", "64", "--batch", "1", "--json")
        self.assertEqual(done.returncode, 1)
        document = json.loads(done.stdout)
        self.validate("bench", document)
        self.assertFalse(any("seconds" in row for row in document["rows"]))
        self.assertFalse(document["rows"][1]["check"]["o"]["pass"])

    # ---- the same bits

    def with_deterministic_kernels(self):
        """Stage 04's, which say that they take it: they are deterministic on the virtual GPU anyhow."""
        for program in ("forward", "backward"):
            source = (ROOT / f"cuda/04_recomputed_backward/{program}.cu").read_text()
            changed = re.sub(r'(FLASH_MODULE = [^;]*"causal)', r"\1 deterministic", source)
            self.assertNotEqual(changed, source)
            copy = self.folder.parent / f"{self.folder.name}-{program}.cu"
            self.addCleanup(copy.unlink)
            copy.write_text(changed)
            self.compile(copy, pathlib.Path(self.environment["FLASH_KERNELS"]) / f"gpu/04_recomputed_backward_{program}.so")

    def test_deterministic(self):
        self.with_deterministic_kernels()
        asked = ["04", "--n", "40", "--batch", "1", "--heads", "1", "--backward", "--deterministic"]
        rows = self.document(*asked)["rows"]
        self.assertEqual([row.get("same_bits") for row in rows], [None, 100])
        self.assertIn("04_recomputed_backward, deterministic: 100 runs on the same inputs, every bit of dQ, dK and dV the "
                      "same; 1.000 times as long", " ".join(self.text(*asked).split()))
        self.environment["FLASH_PRETENDED_NOISE"] = "40"
        done = self.start("bench", *asked, "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["rows"][1]["same_bits"]), (1, 0))
        self.assertIn("FAILS: 04_recomputed_backward, deterministic: two of 100 runs", self.start("bench", *asked).stdout)

    def test_kernels_that_are_not_deterministic_on_purpose(self):
        rows = self.document("04", "--n", "40", "--batch", "1", "--heads", "1", "--backward", "--deterministic")["rows"]
        self.assertIn("seconds", rows[0])
        self.assertIn("deterministic", rows[1]["why"])

    # ---- cells

    def test_sweep(self):
        self.environment["FLASH_PRETENDED_KEYS"] = "1000"  # the check is computed, the cells are not
        self.environment["FLASH_PRETENDED_BYTES"] = str(1 << 31)
        document = self.document("03", "04", "--sweep", "--n", "1024", "--out", "measured.json")
        problems = [run["problem"] for run in document["runs"]]
        self.assertEqual([(p["d"], p["n"], p["causal"]) for p in problems],
                         [(d, 1024, causal) for d in (64, 128, 256) for causal in (False, True)])
        self.assertTrue(all(p["batch"] * p["n"] == 16384 and p["heads"] * p["d"] == 2048 for p in problems))
        self.assertEqual(len({run["sweep"] for run in document["runs"]}), 1)
        for run in document["runs"]:
            self.assertEqual(["seconds" in row for row in run["rows"]], [run["problem"]["d"] != 256] * 2)
        self.assertEqual(json.loads((self.folder / "measured.json").read_text()), document)
        text = self.text("03", "--sweep", "--n", "1024", "--causal", "--d", "64")
        self.assertIn("causal", text)

    def test_decode(self):
        document = self.document("03", "--decode", "--n", "300", "--batch", "2", "--heads", "2")
        self.assertEqual((document["problem"]["nq"], document["problem"]["d"]), (1, 128))
        keys, query = 2 * 2 * 300 * 128 * 2 * 2, 2 * 2 * (2 * 128 * 2 + 4)
        self.assertEqual(document["bytes"], keys + query)
        row, copy = document["rows"][0], document["copy"]
        self.assertEqual(copy["bytes_per_second"], 2 * 2**30 / 0.125)
        self.assertAlmostEqual(row["copy_share"], 4 * document["bytes"] / copy["bytes_per_second"])
        text = self.text("03", "--decode", "--n", "300", "--batch", "1", "--heads", "1")
        for words in ("one query", "of copy", "GB/s"):
            self.assertIn(words, text)

    # ---- peers

    def with_peers(self):
        self.environment["FLASH_PYTHON"] = str(SUPPORT / "pretended_peers.py")

    def test_peers(self):
        self.with_peers()
        document = self.document("03", "04", *SIZES, "--peers")
        peers = {peer["peer"]: peer for peer in document["peers"]}
        self.assertEqual(list(peers), ["flash", "cudnn", "efficient", "triton", "fa3", "fa4", "math"])
        for name in ("flash", "cudnn", "efficient"):  # half a second beside a quarter
            self.assertEqual((peers[name]["seconds"]["median"], peers[name]["ratio"]), (0.5, 2))
            self.assertEqual((peers[name]["version"], peers[name]["check"]["tolerance"]), ("1.2", 1e-3))
        self.assertEqual(peers["math"]["why"], "there is no room for S and P")
        self.assertIn("off by 2.0e-03", peers["triton"]["why"])
        self.assertEqual(peers["fa3"]["why"], "peers.py has ended: fa3 has no kernels here")
        self.assertIn("nonsense", peers["fa4"]["why"])
        text = self.text("03", "04", *SIZES, "--peers")
        for words in ("04 is", "PyTorch's flash (FA2)", "2.00", "not timed: PyTorch's math: there is no room"):
            self.assertIn(words, text)

    def test_sweep_with_peers(self):
        self.with_peers()
        self.environment["FLASH_PRETENDED_KEYS"] = "1000"
        self.environment["FLASH_PRETENDED_BYTES"] = str(1 << 31)
        text = self.text("03", "--sweep", "--n", "1024", "--d", "64", "--peers")
        for words in ("How many times as fast 03_online_softmax is", "cudnn", "2.00"):
            self.assertIn(words, text)
        self.assertEqual(text.count("no room for S and P"), 1)

    def test_python_that_is_not_there(self):
        self.environment["FLASH_PYTHON"] = "no-python-here"
        self.refused(["bench", "03", *SIZES, "--peers"], "no-python-here", "no such program")

    # ---- traffic

    def with_ncu(self, fill=None):
        folder = self.folder.parent / (self.folder.name + "-ncu")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        shutil.copy(SUPPORT / "pretended_ncu.py", folder / "ncu")
        self.environment["PATH"] = f"{folder}:/usr/bin:/bin"
        self.environment["FLASH_PRETENDED_BYTES"] = str(1 << 34)
        if fill:
            self.environment["FLASH_PRETENDED_FILL"] = str(fill)

    def test_traffic(self):
        self.with_ncu(1)
        done = self.start("bench", "04", "--traffic", "--json", "--out", "measured.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not what the ledger says", done.stderr)
        document = json.loads(done.stdout)
        self.validate("bench", document)
        self.validate("bench", json.loads((self.folder / "measured.json").read_text()))
        self.assertEqual(len(document["traffic"]), 3)
        for row in document["traffic"]:
            p, tiles = row["problem"], row["tiles"]
            sizes = ["--n", p["n"], "--d", p["d"], "--heads", p["heads"], "--batch", p["batch"]]
            run = self.json("run", "04", *sizes, "--count-only", "--dtype", "fp16", "--br", tiles["br"], "--bc",
                            tiles["bc"], *["--causal"] * p["causal"])["ledger"]["hbm"]
            self.assertEqual(row["ledger"]["read_bytes"] + row["ledger"]["written_bytes"], run["bytes"])
            self.assertAlmostEqual(row["off"], row["sm_fill_bytes"] / row["ledger"]["read_bytes"] - 1)
            self.assertEqual(row["l2_read_bytes"], row["sm_fill_bytes"])
            self.assertFalse(row["pass"])

    def test_traffic_within_a_percent(self):
        self.with_ncu(1)
        ratios = [row["ledger"]["read_bytes"] / row["sm_fill_bytes"] for row in json.loads(
            self.start("bench", "04", "--traffic", "--json").stdout)["traffic"]]
        for off, passes in ((0.009, True), (-0.009, True), (0.011, False), (-0.011, False)):
            self.environment["FLASH_PRETENDED_FILL"] = str(ratios[0] * (1 + off))
            rows = json.loads(self.start("bench", "04", "--traffic", "--json").stdout)["traffic"]
            self.assertEqual(rows[0]["pass"], passes)
            self.assertAlmostEqual(rows[0]["off"], off, places=6)

    def test_counters_that_are_not_to_be_had(self):
        self.with_ncu()
        self.refused(["bench", "04", "--traffic"], "ncu did not count", "exit status 1", "ERR_NVGPUCTRPERM")

    def test_under_profiler(self):
        self.result("bench", "03", "--under-profiler", "--dtype", "fp16", *SIZES)

    # ---- refusals

    def test_refusals(self):
        self.refused(["bench", "03", "--backward"], "03_online_softmax", "04_recomputed_backward")
        self.refused(["bench", "03", "--d", "32"], "d = 32", "64, 128")
        self.refused(["bench", "--rounds", "19"], "--rounds 19", "20")
        self.refused(["bench", "--n", "0"], "N = 0")
        self.refused(["bench", "--heads", "3", "--kv-heads", "2"], "3", "2")
        self.refused(["bench", "--dtype", "fp32"], "fp32", "fp16 or bf16")
        self.refused(["bench", "--deterministic"], "--backward")
        self.refused(["bench", "--splits", "2"], "--decode")
        self.refused(["bench", "--decode", "--splits", "0"], "--splits 0")
        self.refused(["bench", "--sweep", "--d", "96"], "--sweep", "64, 128 or 256")
        for pair in (["--decode", "--backward"], ["--sweep", "--decode"], ["--sweep", "--batch", "2"],
                     ["--traffic", "--peers"], ["--traffic", "--n", "64"]):
            self.refused(["bench", *pair], pair[0], "not both at once")
        (self.folder / "mine.json").write_text("[1]")
        self.refused(["bench", "03", "--n", "64", "--batch", "1", "--heads", "1", "--out", "mine.json"], "mine.json")
        self.refused(["bench", "03", "--out", "."], "names a folder")

    def test_measured_files(self):
        files = sorted((ROOT / "docs/measured").glob("*.json"))
        for file in files:
            self.validate("bench", json.loads(file.read_text()))
        self.assertTrue(files)


if __name__ == "__main__":
    unittest.main()
