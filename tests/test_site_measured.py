#!/usr/bin/env python3
"""Tables of what was measured: the newest runs, ratios and shares of what stands in the files, nothing typed."""
# label: quick
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/site"))
import measured  # noqa: E402

L2 = "not cleared"


def cells(html, kind="td"):
    return re.findall(rf"<{kind}(?: [^>]*)?>(.*?)</{kind}>", html)


def rows(html):
    return [cells(row) for row in re.findall(r"<tr>(<td.*?)</tr>", html)]


def problem(**changed):
    return {"batch": 4, "heads": 16, "kv_heads": 16, "n": 4096, "d": 128, "dtype": "bf16", "causal": False,
            "backward": False} | changed


def timed(name, seconds, **more):
    return {"stage": name, "tiles": {"br": 128, "bc": 64}, "seconds": {"median": seconds}, "tflops": 1 / seconds} | more


def run(date="2026-12-01", **parts):
    return {"date": f"{date}T00:00:00Z", "gpu": {"name": "a card"}, "driver": "d", "compiler": "c", "rounds": 20, "l2": L2,
            "problem": problem()} | parts


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "docs/measured").mkdir(parents=True)
        self.addCleanup(setattr, measured, "ROOT", measured.ROOT)
        measured.ROOT = self.folder

    def keep(self, *runs, name="card"):
        (self.folder / f"docs/measured/{name}.json").write_text(json.dumps({"runs": runs}))

    def test_nothing(self):
        for make in (lambda: measured.sweep("forward"), measured.ladder, measured.decode, measured.determinism,
                     measured.traffic):
            self.assertEqual(make(), measured.NOTHING)

    def test_sweep(self):
        peer = {"peer": "flash", "title": "FA2", "seconds": {"median": 0.003}, "tflops": 1 / 0.003}
        gone = {"peer": "math", "title": "math", "why": "no room"}

        def cell(date, d, seconds):
            return run(date, sweep=date, problem=problem(d=d), gemm={"tflops": 800}, peers=[peer, gone],
                       rows=[timed("05_fa2_partitioning", seconds, gemm_share=0.4),
                             {"stage": "04_recomputed_backward", "tiles": None, "why": "d = 256"}])
        self.keep(cell("2026-12-02", 256, 0.006), cell("2026-12-02", 64, 0.002), name="new")
        self.keep(cell("2026-12-01", 128, 0.5), name="old")
        html = measured.sweep("forward")
        self.assertEqual(cells(html, "th"), ["d", "N", "mask", "GEMM", "05 of GEMM", "05", "FA2"])
        self.assertEqual(rows(html), [["64", "4,096", "none", "800", "40 %", "500", "333 (1.50)"],
                                      ["256", "4,096", "none", "800", "40 %", "167", "333 (0.50)"]])
        self.assertIn("2026-12-02", html)
        self.assertEqual(measured.sweep("backward"), measured.NOTHING)

    def test_ladder(self):
        steps = [timed("05_fa2_partitioning/a_loop_swap", 0.008), timed("05_fa2_partitioning/b_split_q_warps", 0.002)]
        older = [timed("05_fa2_partitioning/a_loop_swap", 1), timed("05_fa2_partitioning/b_split_q_warps", 1)]
        before = [timed("01_materialized", 1), timed("02_tiling", 0.5)]
        self.keep(run("2026-12-01", rows=older), run("2026-12-02", rows=steps), run("2026-12-03", rows=steps[:1]),
                  run("2026-12-03", rows=before, problem=problem(n=64)))
        html = measured.ladder()
        self.assertEqual(html.count("<table"), 1)
        self.assertEqual([row[0] for row in rows(html)], ["05a", "05b"])
        self.assertEqual([row[-1] for row in rows(html)], ["–", "4.00"])

    def test_decode(self):
        row = timed("05_fa2_partitioning", 1e-4, bytes_per_second=3.6e12, copy_share=0.9)
        self.keep(run(problem=problem(nq=1, splits=16), copy={"bytes_per_second": 4e12}, rows=[row]))
        self.assertEqual(rows(measured.decode())[0][2:], ["16", "100", "3,600", "4,000", "90 %"])
        self.assertEqual(measured.ladder(), measured.NOTHING)

    def test_determinism(self):
        both = [timed("05_fa2_partitioning", 0.002), timed("05_fa2_partitioning", 0.003, deterministic=True, same_bits=100)]
        self.keep(run(problem=problem(backward=True), rows=both))
        self.assertEqual(rows(measured.determinism())[0][2:], ["100 runs, all bits the same", "1.500"])
        both[1]["same_bits"] = 0
        self.keep(run(problem=problem(backward=True), rows=both))
        self.assertEqual(rows(measured.determinism())[0][2], "two runs differ")

    def test_traffic(self):
        row = {"stage": "05_fa2_partitioning", "problem": problem(causal=True), "tiles": None, "off": -0.0021,
               "ledger": {"read_bytes": 1000000, "written_bytes": 1}, "sm_fill_bytes": 997900, "l2_read_bytes": 3,
               "dram_read_bytes": 4, "dram_written_bytes": 5, "pass": True}
        whole = run(traffic=[row])
        del whole["problem"]
        self.keep(whole)
        self.assertEqual(rows(measured.traffic())[0],
                         ["05", "forward, bf16, 4 × 16 heads, N = 4,096, d = 128, causal", "none", "1,000,000", "997,900",
                          "−0.21 %", "3", "4", "5"])


if __name__ == "__main__":
    unittest.main()
