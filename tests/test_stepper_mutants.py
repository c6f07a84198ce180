#!/usr/bin/env python3
# label: deep
"""Mistakes in the stepper page: each makes the test that is named with it fail."""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "support"))
import browser  # noqa: E402, F401: ends here where there is none

# The file of sim/trace/page, what stands there, what stands there by mistake, and the test that says so.
MISTAKES = [
    ("replay.js", "if (count < this.state.count ||", "if (", "Stepping.test_forward_and_back_are_the_same"),
    ("replay.js", "tiles: new Map([...this.tiles].map(([id, tile]) => [id, {...tile }]))", "tiles: new Map(this.tiles)",
     "Stepping.test_forward_and_back_are_the_same"),
    ("replay.js", "of.read += read", "of.read += 1", "Stepping.test_counters_add_up"),
    ("replay.js", "written[element] = 1;", "", "Numbers.test_memory_not_yet_written"),
    ("numbers.js", 'if (x === -Infinity) return "−∞";', "", "Numbers.test_minus_infinity_and_rows_that_see_nothing"),
    ("numbers.js", 'x === "-inf" ? -Infinity', 'x === "-inf" ? 0', "Stepping.test_shows_what_the_trace_holds"),
    ("lockstep.js", "isBackward(other, v) === pass", "pass !== null", "traces:Pages.test_two_passes"),
    ("breaks.js", "value !== before", "value > 1", "Stepping.test_breaks"),
    ("breaks.js", "written + rmw > 0", "written > 2", "Stepping.test_breaks"),
    ("main.js", "at.find((k) => k > view.count)", "at.find((k) => k >= view.count)", "Stepping.test_code_click"),
    ("permalink.js", "if (view.cell) fields", "if (view.cell && k) fields", "Stepping.test_permalink"),
    ("main.js", 'if (isJump) this.#writeAddress("pushState");', "", "Stepping.test_back_and_forward_of_the_browser"),
    ("lockstep.js", "(otherTile + 0.5)", "(otherTile + 1.5)", "TwoTraces.test_lock_step"),
    ("picture.js", "return layer?.k === own &&", "return layer?.k === own ||",
     "Numbers.test_not_final_gone_and_masked_look_so"),
    ("picture.js", "if (isOverBoth(slot.name)) this.#drawMasked(g, slot);", "",
     "Numbers.test_not_final_gone_and_masked_look_so"),
    ("style.css", "--muted: #51606e", "--muted: #9fb0bd", "Looks.test_contrast"),
    ("page.html", 'aria-label="Step">', ">", "Looks.test_every_control_has_a_name_and_the_focus_reaches_it"),
    ("page.html", '<link rel="icon" href="data:,">', '<link rel="icon" href="https://example.org/icon.png">',
     "Stepping.test_asks_for_nothing_beyond_its_file"),
    ("operand.js", "Math.exp(s.v)", "2 ** s.v", "traces:Formulas.test_stages"),
    ("rules.js", "0x9e3779b9n", "0x9e3779b1n", "traces:Formulas.test_stages"),
    ("rules.js", "centre + (causal ? 0", "centre + (causal ? 1", "traces:Formulas.test_stages"),
    ("modifiers.js", "1 - tanh * tanh", "1 - tanh", "traces:Formulas.test_backward"),
    ("trace.js", "Math.floor((head * kvHeads) / heads)", "head % kvHeads",
     "traces:Pages.test_heads_of_a_group"),
    ("trace.js", "    this.#settleHeads();", "", "traces:Pages.test_heads_of_a_group"),
    ("style.css", "min-height: 700px", "overflow: hidden", "Sizes.test_zoomed"),
    ("style.css", ".line .words {\n  white-space: pre-wrap;", ".line .words {\n  white-space: pre;",
     "Stepping.test_code_lines_are_whole"),
    ("numbers.js", "(Math.round(n) || 0)", "Math.round(n)", "Stepping.test_zero_has_no_sign"),
    ("counters.js", '"by hand": "chosen by hand', '"other": "chosen by hand', "Stepping.test_whose_sizes_the_tiles_are"),
    ("controls.js", "return this.#openBreaks(true);", "return;", "Stepping.test_run_without_a_condition_asks_for_one"),
    ("help.js", '["k-mma", "mma",', '["k-mma", "",', "traces:Kernels.test_legend_of_the_lanes"),
    ("picture.js", "if (!this.#isNeverInHbm(slot)) g.fill", "g.fill",
     "traces:Kernels.test_says_where_what_is_never_in_hbm_is"),
    ("picture.js", "last.rows[1] = row + 1;", "last.rows[1] = row;",
     "traces:Kernels.test_frames_around_what_a_step_changes"),
    ("shelf.js", "Math.max(cell, least / rows)", "cell", "traces:Kernels.test_small_arrays_are_seen"),
    ("style.css", "--negative: #2b6cb8; --zero: #33404c; --positive: #ffb65c",
     "--negative: #1b2b38; --zero: #172029; --positive: #33404c", "traces:Screenshots.test_light_and_dark"),
    ("style.css", "flex: 0 0 185px", "flex: 0 0 700px", "Stepping.test_fits_on_the_screen"),
]


class Mistakes(unittest.TestCase):
    def test_each_is_caught(self):
        for file, right, wrong, test in MISTAKES:
            with self.subTest(file=file, mistake=wrong or f"without {right}"):
                program, name = f"test_stepper{'_traces' if ':' in test else ''}.py", test.split(":")[-1]
                run = subprocess.run([sys.executable, TESTS / program, name], capture_output=True, text=True,
                                     env={**os.environ, "FLASH_STEPPER_MISTAKE": json.dumps([file, right, wrong])})
                self.assertNotIn("does not stand once", run.stderr)
                self.assertEqual(run.returncode, 1)
                self.assertIn("FAILED (", run.stderr)


if __name__ == "__main__":
    unittest.main()
