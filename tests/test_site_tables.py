#!/usr/bin/env python3
"""Tables of the site: units, an order that a reader knows, no sign where nothing changed, no empty cells."""
# label: quick
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/site"))
import tables  # noqa: E402


def cells(html, kind="td"):
    return re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", html)


class Tables(unittest.TestCase):
    def test_what_a_change_does_to_the_traffic(self):
        def pair(a, b):
            return {"a": {"read": a, "written": 0}, "b": {"read": b, "written": 0},
                    "change": {"elements": b - a, "bytes": 2 * (b - a)}}
        tensors = {"O": pair(7, 7), "S": pair(9000, 0), "Q": pair(1, 3)}
        html = tables.ledger_delta({"tensors": tensors, "total": pair(9008, 10)}, "02", "03",
                                   {"n": 4096, "d": 64, "dtype": "fp16", "M": 98304})
        self.assertTrue(all(re.search(r"\[(elements|bytes)\]$", head) for head in cells(html, "th")[1:]))
        self.assertEqual(cells(html)[::7], ["Q", "S", "O", "<b>all</b>"])
        self.assertEqual(cells(html)[5::7], ["+2", "−9,000", "0", "−8,998"])
        self.assertIn("N = 4,096, d = 64, fp16; M = 98,304 elements", html)

    def test_lines_without_code_say_so(self):
        for algorithm in tables.algorithms():
            html = tables.paper_map_table(None, algorithm["number"], algorithm["paper"])
            for row in re.findall(r"<tr>(?!<th>)(.*?)</tr>", html):
                if ".hpp:" not in row and ".cu:" not in row:
                    self.assertIn('<td colspan="2">no line of its own</td>', row)

    def test_what_a_kernel_overlaps(self):
        stage = next(stage for stage in tables.STAGES if stage.number == "05")
        said = {program: re.sub("<[^>]*>", "", tables.overlap(stage, program)) for program in stage.programs()}
        self.assertEqual(said["a_loop_swap"], "loads of K and V, one tile ahead")
        self.assertEqual(said["b_split_q_warps"], "none")
        self.assertEqual(said["d_async_copies"], "copies of K, one tile ahead; of V, while S is made")
        self.assertEqual(said["d_async_copies_backward"], "copies of dO and Q, one tile ahead")
        self.assertEqual(stage.titled("a_loop_swap_backward"), "05a Loop swap")

    def test_a_cell_may_span(self):
        html = tables.table(["a", "b", "c"], [["x", ("y", "number", 2)]])
        self.assertIn('<td>x</td><td class="number" colspan="2">y</td>', html)


if __name__ == "__main__":
    unittest.main()
