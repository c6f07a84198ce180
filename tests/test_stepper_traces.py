#!/usr/bin/env python3
# label: full
"""Pages that `step` writes, in headless Chromium: formulas are true, counters are the ledger's, the end the outputs."""
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
from browser import Browser, Keys  # noqa: E402
from command_line import load, save  # noqa: E402
from stepper_page import joined  # noqa: E402

APP = os.environ.get("FLASH_APP", str(Path(__file__).resolve().parent.parent / "build/cpu/flashsteps-app"))
GROUPED = ["--heads", 4, "--kv-heads", 2]
ODD = ["--n", 13, "--nk", 17, "--d", 6, "--dv", 5, "--br", 4, "--bc", 5]


def setUpModule():
    global browser, folder
    folder = tempfile.TemporaryDirectory()
    browser = Browser()


def tearDownModule():
    browser.quit()
    folder.cleanup()


def app(*arguments):
    return subprocess.run([APP, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def page_of(*arguments):
    page = Path(folder.name) / "page.html"
    app("step", *arguments, "--out", page)
    return page.read_text()


def traces_in(page):
    return json.loads(re.search(r'id="traces">(.*?)</script>', page, re.DOTALL).group(1))


def opened(*arguments):
    """The command's traces on a page of the sources as they are now."""
    traces = traces_in(page_of(*arguments))
    browser.open_text(joined(traces))
    return traces


class Case(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(browser.errors(), [])


class Formulas(Case):
    """What the page shows as a cell's arithmetic evaluates to what the run computed."""

    def check(self, *arguments):
        for k, trace in enumerate(opened(*arguments)):
            found = browser.look("formulas", k)
            self.assertEqual(found["without"], [], arguments)
            self.assertEqual(found["wrong"][:3], [], arguments)
            computed = sum(len(s["values"]) for s in trace["steps"] if s["do"] in ("compute", "fill"))
            self.assertEqual(found["checked"], computed)
            self.assertGreater(computed, 100)

    def test_stages(self):
        for stage in ("01", "02", "03", "04", "05a", "05b", "05e"):
            size = ODD if stage != "01" else ODD[:-4]
            self.check(stage, *size)
            self.check(stage, *size, "--causal", "--softcap", 2, "--dropout", 0.3, "--dropout-seed", 5, "--heads", 2)

    def test_backward(self):
        for stage in ("01", "04", "05"):
            size = ODD if stage != "01" else ODD[:-4]
            self.check(stage, *size, "--backward")
            self.check(stage, *size, "--backward", "--causal", "--softcap", 2, "--dropout", 0.3, *GROUPED)

    def test_masks(self):
        mask, slopes = f"{folder.name}/mask.npy", f"{folder.name}/slopes.npy"
        save(mask, ((2, 13, 17), [float(k % 3 != 0 and not 17 <= k < 34) for k in range(2 * 13 * 17)]))
        save(slopes, ((2,), [0.5, 0.25]))
        masked = [*ODD, "--heads", 2, "--mask", mask, "--alibi", slopes, "--softcap", 3]
        for stage in ("02", "03", "04"):
            self.check(stage, *masked, "--window", "4,2")
        self.check("04", *masked, "--causal", "--backward")

    def test_formats(self):
        for dtype in ("fp16", "bf16", "fp64"):
            self.check("03", *ODD, "--causal", "--dropout", 0.2, "--dtype", dtype)
            self.check("02", *ODD, "--causal", "--dropout", 0.2, "--dtype", dtype)
            self.check("04", *ODD, "--causal", "--dropout", 0.2, "--dtype", dtype, "--backward", "--softcap", 1)
            self.check("01", *ODD[:-4], "--dropout", 0.2, "--dtype", dtype, "--backward", "--softcap", 1)

    def test_first_touch(self):
        self.check("03", *ODD, "--causal", "--first-touch")


class Ends(Case):
    """After the last step: the outputs and the ledger of the same run."""

    def compare(self, *arguments):
        traces = opened(*arguments)
        browser.press("g")
        out = f"{folder.name}/out"
        run = json.loads(app("run", *arguments, "--json", "--out", out))
        self.compare_outputs(traces[0], out)
        passes = [run["ledger"]] if "ledger" in run else [run["forward"]["ledger"], run["backward"]["ledger"]]
        counts = browser.look("counts")
        for shown, kind in (("read", "read"), ("written", "write"), ("rmw", "rmw")):
            self.assertEqual(counts[shown], sum(sum(p["hbm"][kind].values()) for p in passes))
        self.assertEqual(counts["bytes"], sum(p["hbm"]["bytes"] for p in passes))
        self.assertEqual(counts["sram"], [sum(p["sram"][k] for p in passes) for k in ("read", "write")])
        self.assertEqual(counts["flops"], [sum(p["flops"][k] for p in passes) for k in ("matmul", "exp", "other")])
        self.assertEqual(counts["peak"], max(p["sram"]["peak_bytes"] for p in passes))
        self.compare_lines(passes)

    def compare_outputs(self, trace, out):
        names = {t["name"]: k for k, t in enumerate(trace["tensors"])}
        compared = 0
        for path in Path(out).glob("*.npy"):
            name = {"o": "O", "dq": "dQ", "dk": "dK", "dv": "dV", "lse": "LSE"}.get(path.stem)
            if name in names:
                self.assertEqual([float(x) for x in browser.look("tensor", names[name])], load(path)[2], name)
                compared += 1
        self.assertGreater(compared, 0)

    def compare_lines(self, passes):
        lines = {}
        for line in (line for p in passes for line in p["lines"]):
            lines[f"{line['file']}:{line['line']}"] = [line["read"], line["write"]]
        shown = browser.look("lineTotals", 0)
        self.assertEqual({key: both for key, both in shown.items() if sum(both)}, lines)

    def test_forward(self):
        self.compare("02", *ODD, "--causal")
        self.compare("03", *ODD, "--causal", "--heads", 2, "--dtype", "bf16")

    def test_backward_with_grouped_heads(self):
        self.compare("04", *ODD, "--causal", "--backward", *GROUPED, "--batch", 2)
        self.compare("01", *ODD[:-4], "--backward", *GROUPED)

    def test_rows_that_see_nothing(self):
        self.compare("04", "--n", 9, "--nk", 5, "--d", 4, "--br", 2, "--bc", 2, "--causal", "--backward")


class Pages(Case):
    def test_is_made_of_the_sources(self):
        page = page_of("03", "--causal")
        self.assertEqual(page.split('id="traces">')[0], joined([]).split('id="traces">')[0])
        self.assertEqual(page.split("</script>", 1)[1], joined([]).split("</script>", 1)[1])
        browser.open_text(page)
        browser.press(Keys.ARROW_RIGHT)
        self.assertEqual(browser.count(), 1)

    def test_two_stages(self):
        traces = opened("02", "--beside", "03", "--causal")
        self.assertEqual(len(traces), 2)
        for _ in range(12):
            browser.press("n")
        browser.press("g")
        self.assertEqual([browser.count(k) for k in (0, 1)], [len(t["steps"]) for t in traces])

    def test_two_passes(self):
        traces = opened("01", "--beside", "04", "--backward")
        first = [t["chapters"][1]["first"] for t in traces]
        for leader, other in ((0, 1), (1, 0)):
            browser.press(str(leader + 1))
            for count in range(first[leader] + 1, len(traces[leader]["steps"]), 3):
                browser.go(count)
                self.assertGreater(browser.count(other), first[other], (leader, count))
            browser.go(first[leader] - 2)
            self.assertLessEqual(browser.count(other), first[other])

    def test_fit_on_the_screen(self):
        opened("04", "--causal", "--backward", *GROUPED)
        for count in (0, 100, 900):
            browser.go(count)
            self.assertEqual(browser.look("misfits"), [])
        opened("01", "--beside", "04", "--backward")
        for key in "rg":
            browser.press(key)
            self.assertEqual(browser.look("misfits"), [])

    def test_rows_that_see_nothing(self):
        text = page_of("04", "--n", 5, "--nk", 2, "--d", 4, "--br", 2, "--bc", 2, "--causal")
        json.loads(re.search(r'id="traces">(.*?)</script>', text, re.DOTALL).group(1),
                   parse_constant=lambda name: self.fail(f"{name} is no JSON"))
        browser.open_text(joined(traces_in(text)))
        browser.press("g")
        self.assertEqual([browser.look("cell", "LSE", i, 0)[1] for i in (0, 2)], ["-inf", "-inf"])
        self.assertEqual([browser.look("cell", "O", i, 1)[1] for i in (0, 2)], [0, 0])
        browser.js("stepper.active.choose({ cell: { name: 'LSE', i: 2, j: 0 } })")
        self.assertIn("−∞", browser.text(".cell-card"))

    def test_heads_of_a_group(self):
        """Query head 2 of 4 shows KV head 1 of 2, and is followed there."""
        trace = opened("04", *ODD, "--backward", *GROUPED)[0]
        for k, step in enumerate(trace["steps"], 1):
            name = trace["tensors"][step.get("tensor", 0)]["name"]
            if step["do"] == "store" and name == "dK":
                browser.go(k)
                kv_head = step["first"] // (17 * 6)
                self.assertEqual(browser.js("stepper.active.head"), 2 * kv_head)
                self.assertEqual(browser.look("cell", name, step["rows"][0], 0)[1], 0)
        browser.press("g")
        browser.select("#head", "0.2")
        for k, t in enumerate(trace["tensors"]):
            if t["name"] in ("K", "dK"):
                in_hbm = browser.look("cell", t["name"], 2, 1)[1]
                self.assertEqual(in_hbm, browser.look("tensor", k)[17 * 6 + 2 * 6 + 1])

    def test_large_one_is_quick(self):
        """N = 64, d = 64: loads within a second, a step is drawn within a frame of 60 Hz."""
        page = page_of("04", "--n", 64, "--d", 64, "--br", 16, "--bc", 16, "--causal", "--backward")
        self.assertLess(len(page), 5e6)
        loads = []
        for _ in range(3):
            browser.open_text(page)
            loads.append(browser.js("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        length = browser.js("stepper.active.trace.length")
        steps, back = (browser.look("times", list(range(1, length, 7)), by) for by in (1, -1))
        print(f"N = 64, d = 64: loads in {min(loads):.0f} ms, a step takes {statistics.median(steps):.1f} ms, "
              f"one back {statistics.median(back):.1f} ms, {len(page) / 1e6:.1f} MB")
        self.assertLess(min(loads), 1000)
        self.assertLess(statistics.median(steps), 16)
        self.assertLess(statistics.median(back), 16)


class Kernels(Case):
    @classmethod
    def setUpClass(cls):
        cls.trace = traces_in(page_of("03", "--on", "vgpu", "--causal", "--n", 64))[0]
        cls.page = joined([cls.trace])

    def setUp(self):
        browser.open_text(self.page)

    def test_ends_with_the_outputs(self):
        out = f"{folder.name}/kernel"
        app("run", "03", "--on", "vgpu", "--causal", "--n", 64, "--d", 64, "--out", out)
        browser.press("g")
        o = next(k for k, t in enumerate(self.trace["tensors"]) if t["name"] == "O")
        self.assertEqual(browser.look("tensor", o), load(f"{out}/o.npy")[2])

    def test_steps_and_back(self):
        length = len(self.trace["steps"])
        counts = [0, 1, 7, length // 3, length // 2, length - 1, length]
        digests = []
        for count in counts:
            browser.go(count)
            digests.append(browser.digest())
        for count, digest in reversed(list(zip(counts, digests))):
            browser.go(count)
            self.assertEqual(browser.digest(), digest)

    def test_lanes(self):
        self.assertEqual(len(self.trace["lanes"]), 4)
        self.assertIn("a shape, not a prediction", browser.text(".lanes-head"))
        browser.go(400)
        time, x, y = browser.look("laneMiddle", 2)
        browser.look("click", x, y)
        clicked = self.trace["steps"][browser.count() - 1]
        self.assertEqual(self.trace["lanes"][clicked["lane"]]["warp"], 2)
        self.assertTrue(clicked["begin"] <= time <= clicked["end"])
        before = browser.count()
        browser.js("stepper.active.lanes.canvas.focus()")
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(browser.js("stepper.active.step.lane"), clicked["lane"])
        self.assertGreater(browser.count(), before)

    def test_legend_of_the_lanes(self):
        for said in ("mma", "global memory", "shared memory", "barrier, wait"):
            self.assertIn(said, browser.text(".lanes-pane .legend"))
        browser.press("h")
        for said in ("shared memory", "registers", "matrix products"):
            self.assertIn(said, browser.text("#help"))

    def test_says_where_what_is_never_in_hbm_is(self):
        browser.go(500)
        self.assertIn("S in registers; P in shared memory; O in registers, HBM", browser.text(".row-pane"))
        browser.js("stepper.active.choose({ cell: { name: 'S', i: 1, j: 1 } })")
        self.assertIn("is in registers", browser.text(".cell-card"))
        self.assertIn("never in HBM", browser.text(".cell-card"))
        opened("03", "--on", "vgpu", "--n", 64)
        browser.go(300)
        self.assertEqual([browser.look("inkAtEndOf", name) for name in "SP"], [0, 0], "not drawn as unwritten")
        self.assertGreater(browser.look("inkAtEndOf", "Q"), 0.5)
        trace, = opened("02", "--on", "vgpu")
        browser.go(len(trace["steps"]) // 2)
        self.assertIn("S in registers, shared memory, HBM", browser.text(".row-pane"))

    def test_frames_around_what_a_step_changes(self):
        trace, = opened("04", "--on", "vgpu", "--n", 9, "--nk", 5, "--causal")
        o = next(k for k, t in enumerate(trace["tensors"]) if t["name"] == "O")
        step = next(s for s in reversed(trace["steps"]) if any(c.get("tensor") == o for c in s.get("changes", [])))
        changes = [c for c in step["changes"] if c.get("tensor") == o]
        columns = sorted({(c["first"] + k) % 64 for c in changes for k in range(len(c["values"]))})
        self.assertGreater(len(changes), 1)
        parts = "changedParts(arguments[0], { rows: arguments[1], cols: arguments[2] }, arguments[3])"
        self.assertEqual(browser.js(parts, changes, 9, 64, 0),
                         [{"rows": [0, 9], "cols": [columns[0], columns[-1] + 1]}])
        stretches = [{"first": 7, "values": [0] * 5}, {"first": 14, "values": [0] * 2}, {"first": 40, "values": [0]}]
        found = browser.js(parts, stretches, 6, 4, 4)
        self.assertEqual(found, [{"rows": [0, 1], "cols": [3, 4]}, {"rows": [1, 2], "cols": [0, 4]},
                                 {"rows": [2, 3], "cols": [2, 4]}])
        self.assertEqual(browser.js("around(arguments[0])", found), {"rows": [0, 3], "cols": [0, 4]})

    def test_small_arrays_are_seen(self):
        browser.go(500)
        boxes = browser.js("stepper.active.picture.shelf.map((b) => [b.name, b.w, b.h])")
        self.assertIn("max", [name for name, _, _ in boxes])
        self.assertEqual([b for b in boxes if min(b[1:]) < 13.9], [])

    def test_marks_begin_visits(self):
        browser.press("n")
        browser.press("n")
        self.assertIn("column tile 0", browser.text("#sentence"))

    def test_fits_on_the_screen(self):
        browser.go(500)
        self.assertEqual(browser.look("misfits"), [])


class Screenshots(Case):
    """Kept in the build folder, for people; the drawings have ink that stands out, in both themes."""

    def test_light_and_dark(self):
        for name, arguments in (("cpu", ["03"]), ("kernel", ["03", "--on", "vgpu", "--n", 32, "--nk", 256]),
                                ("two", ["03", "--beside", "01"])):
            page = joined(traces_in(page_of(*arguments)))
            length, seen = None, {}
            for theme in ("light", "dark"):
                browser.open_text(page, f"#theme={theme}")
                length = browser.js("stepper.active.trace.length")
                browser.go(length * 3 // 4)
                png = seen[theme] = browser.screenshot(f"stepper_{name}_{theme}")
                self.assertEqual(struct.unpack(">II", png[16:24]), (1280, 720))
                self.assertEqual(browser.look("misfits"), [])
                for share, contrast in browser.look("inks"):
                    self.assertGreater(share, 0.04, (name, theme))
                    self.assertGreater(contrast, 2.2, (name, theme))  # values near zero are meant to be pale
            self.assertNotEqual(seen["light"], seen["dark"])


if __name__ == "__main__":
    unittest.main()
