#!/usr/bin/env python3
# label: full
"""The stepper page in headless Chromium: what it shows is what the trace holds, at every step, by every control."""
import json
import math
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
from browser import Browser, Keys  # noqa: E402
from hand_made_trace import online_softmax  # noqa: E402
from stepper_page import joined  # noqa: E402

def setUpModule():
    global browser
    browser = Browser()


def tearDownModule():
    browser.quit()


class Case(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(browser.errors(), [])


class Stepping(Case):
    @classmethod
    def setUpClass(cls):
        cls.trace = online_softmax()
        cls.steps = len(cls.trace["steps"])
        cls.page = joined([cls.trace])

    def setUp(self):
        browser.open_text(self.page)

    def test_asks_for_nothing_beyond_its_file(self):
        asked = [json.loads(entry["message"])["message"] for entry in browser.driver.get_log("performance")]
        urls = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
        self.assertTrue(urls)
        self.assertEqual([u for u in urls if not u.startswith("file://") and not u.startswith("about:")], [])

    def test_forward_and_back_are_the_same(self):
        forward = []
        for count in range(self.steps + 1):
            self.assertEqual(browser.count(), count)
            forward.append(browser.digest())
            browser.press(Keys.ARROW_RIGHT)
        self.assertEqual(len(set(forward)), self.steps + 1, "every step changes something")
        for count in reversed(range(self.steps)):
            browser.press(Keys.ARROW_LEFT)
            self.assertEqual(browser.digest(), forward[count])
        for count in (self.steps, 3, 100, 99):
            browser.go(count)
            self.assertEqual(browser.digest(), forward[count])

    def test_shows_what_the_trace_holds(self):
        """Against a replay of its own: HBM and the tile of every step."""
        for count, step in enumerate(self.trace["steps"], 1):
            browser.go(count)
            name, rows, cols = step["name"], step["rows"], step["cols"]
            cells = [(i, j) for i in range(*rows) for j in range(*cols)]
            sram, hbm = zip(*(browser.look("cell", name, i, j) for i, j in cells))
            if "values" in step:
                self.assertEqual(list(sram), step["values"])
            elif step["do"] == "load":
                self.assertEqual(sram, hbm)
            else:
                self.assertEqual(list(hbm), browser.look("tile", step["tile"]))

    def test_counters_add_up(self):
        for count in (0, 1, 40, self.steps):
            browser.go(count)
            done = self.trace["steps"][:count]
            read, written = (sum(s.get("hbm", [0, 0, 0])[k] for s in done) for k in (0, 1))
            all_tensors = browser.look("column", ".moved tbody tr", -1)
            self.assertEqual(all_tensors, [f"{read:,}", f"{written:,}", f"{4 * (read + written):,}"])
            self.assertEqual(browser.look("counts")["held"], done[-1]["held"] if done else 0)
        peak = max(s["held"] for s in self.trace["steps"])
        self.assertIn(f"{peak / 96:.3g} M", browser.text(".sram"))

    def test_slider_and_step_box(self):
        browser.type("#step", "57")
        self.assertEqual(browser.count(), 57)
        self.assertEqual(browser.js("document.getElementById('slider').value"), "57")
        browser.driver.find_element("id", "slider").send_keys(Keys.ARROW_RIGHT)
        self.assertEqual((browser.count(), browser.js("document.getElementById('step').value")), (58, "58"))
        for text, count in (("0", 0), ("9999", self.steps), ("-4", 0)):
            browser.type("#step", text)
            self.assertEqual(browser.count(), count)

    def test_keys(self):
        starts = [v + 1 for v in browser.js("stepper.active.trace.visits.map((v) => v.first)")]
        first, second, third = starts[:3]
        for keys, shift, count in [
                (" ", False, 1), (" ", True, 0), (Keys.ARROW_RIGHT, False, 1), (Keys.ARROW_LEFT, False, 0),
                ("n", False, first), ("n", False, second), ("n", False, third), ("n", True, second),
                (Keys.PAGE_DOWN, False, third), (Keys.PAGE_UP, False, second), ("g", False, self.steps),
                ("r", False, 0), (Keys.END, False, self.steps), (Keys.HOME, False, 0)]:
            browser.press(keys, shift=shift)
            self.assertEqual(browser.count(), count, repr(keys))
        browser.press(Keys.ARROW_DOWN)
        browser.press(Keys.ARROW_DOWN)
        self.assertEqual(browser.js("stepper.active.row"), 2)
        for key in "h?":
            browser.press(key)
            self.assertTrue(browser.js("document.getElementById('help').open"))
            listed = browser.text("#help")
            for said in ("Space", "→", "N", "G", "R", "B", "T", "H", "?"):
                self.assertIn(said, listed)
            browser.press(Keys.ESCAPE)
            self.assertFalse(browser.js("document.getElementById('help').open"))

    def test_plays_and_pauses(self):
        browser.press("p")
        self.assertEqual(browser.text("#play"), "pause")
        browser.wait(1.3)
        browser.press("p")
        played = browser.count()
        self.assertGreaterEqual(played, 1)
        browser.wait(0.7)
        self.assertEqual(browser.count(), played)

    def test_permalink(self):
        browser.type("#step", "98")
        browser.select(".cell-name", "O")
        browser.type(".cell-row", "2")
        browser.type(".cell-col", "1")
        browser.js("stepper.setConditions({ m: true, row: false, write: false, line: '0:43', tensor: 'O' })")
        browser.press("t")
        before, address = browser.digest(), browser.address()
        for field in ("step=98", "row=2", "cell=O.2.1", "break=m,line:0:43,tensor:O", "theme="):
            self.assertIn(field, address)
        texts = [browser.text(css) for css in (".row-pane", ".cell-card", "#sentence")]
        browser.open_text(self.page, address)
        self.assertEqual((browser.digest(), browser.address()), (before, address))
        self.assertEqual([browser.text(css) for css in (".row-pane", ".cell-card", "#sentence")], texts)
        self.assertTrue(browser.js("document.querySelector('[name=m]').checked"))

    def test_back_and_forward_of_the_browser(self):
        browser.type("#step", "10")
        browser.press(Keys.ARROW_RIGHT)
        browser.type("#step", "90")
        browser.driver.back()
        self.assertEqual(browser.count(), 11, "stepping in place leaves no entries")
        browser.driver.forward()
        self.assertEqual(browser.count(), 90)

    def test_breaks(self):
        steps = self.trace["steps"]
        maximum, changes = {}, set()
        for k, s in enumerate(steps):
            if s["name"] == "m_new" and s["do"] == "compute":
                for i, value in zip(range(*s["rows"]), s["values"]):
                    if maximum.get(i) != value:
                        changes.add(k + 1)
                    maximum[i] = value
        writes = {k + 1 for k, s in enumerate(steps) if s["do"] == "store"}
        row = {k + 1 for k, s in enumerate(steps) if s["name"] not in "KV" and s["rows"][0] <= 5 < s["rows"][1]}
        line = {k + 1 for k, s in enumerate(steps) if s["at"][1] == steps[30]["at"][1]}
        tensor = {k + 1 for k, s in enumerate(steps) if s["name"] == "O"}
        browser.js("stepper.active.choose({ chosenRow: 5 })")
        off = {"m": False, "row": False, "write": False, "line": "", "tensor": ""}
        for on, expected in [({"m": True}, changes), ({"write": True}, writes), ({"row": True}, row),
                             ({"tensor": "O"}, tensor), ({"line": f"0:{steps[30]['at'][1]}"}, line),
                             ({"m": True, "write": True}, changes | writes)]:
            browser.js("stepper.setConditions(arguments[0])", {**off, **on})
            self.assertTrue(expected)
            browser.press("r")
            self.assertEqual(self.stops("b", False), sorted(expected), on)
            self.assertIn("No further step", browser.text("#notice"))
            browser.press("g")
            self.assertEqual(self.stops("b", True), sorted(expected - {len(steps)}, reverse=True), on)

    def stops(self, key, shift):
        counts = []
        while True:
            before = browser.count()
            browser.press(key, shift=shift)
            if browser.count() == before:
                return counts
            counts.append(browser.count())

    def test_run_without_a_condition_asks_for_one(self):
        for css in ("#break-forward", "#break-back"):
            self.assertFalse(browser.driver.find_element("id", "break-form").is_displayed())
            browser.click(css)
            self.assertTrue(browser.driver.find_element("id", "break-form").is_displayed())
            self.assertEqual(browser.count(), 0)
            browser.press(Keys.ESCAPE)

    def test_break_form(self):
        browser.click("#breaks")
        browser.click("[name=write]")
        browser.click("#break-forward")
        self.assertEqual(browser.count(), 2)
        self.assertIn("break=write", browser.address())

    def test_code_click(self):
        line = next(s["at"][1] for s in self.trace["steps"] if s["name"] == "m_new" and s["do"] == "compute")
        runs = [k + 1 for k, s in enumerate(self.trace["steps"]) if s["at"][1] == line]
        for expected in [*runs, runs[0]]:
            browser.click(f"[data-line='{line}']")
            self.assertEqual(browser.count(), expected)
            self.assertIn(str(line), browser.text(".line.current .number"))
        self.assertIn("runs no more", browser.text("#notice"))
        browser.click(f"[data-line='{line}']", shift=True)
        self.assertEqual(browser.count(), runs[-1])
        self.assertIn("runs no more", browser.text("#notice"))
        browser.js("document.querySelector('.code-lines').focus()")
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
        self.assertEqual(browser.count(), runs[-1] + 1, "P is computed after m_new")

    def test_code_margin_is_the_ledger(self):
        browser.press("g")
        totals = {}
        for s in self.trace["steps"]:
            read, written, _ = s.get("hbm", [0, 0, 0])
            total = totals.setdefault(s["at"][1], [0, 0])
            total[0] += read
            total[1] += written
        expected = {str(line): f"{r} · {w}" if r + w else "" for line, (r, w) in totals.items()}
        self.assertEqual(browser.look("lines"), expected)

    def test_code_lines_are_whole(self):
        longest = max(self.trace["files"][0]["lines"], key=len)
        self.assertGreater(len(longest), 90)
        words = browser.js("[...document.querySelectorAll('.words')].map((e) => e.textContent.replace(/ +/g, ' '))")
        self.assertIn(re.sub(" +", " ", longest), words)
        wide = "[...document.querySelectorAll('.code-lines, .words')].filter((e) => e.scrollWidth > e.clientWidth).length"
        self.assertEqual(browser.js(wide), 0)

    def test_chapters(self):
        values = browser.js("[...document.querySelectorAll('#chapter option')].map((o) => Number(o.value))")
        self.assertEqual(len(values), 2 + 10, "start, forward and the tiles that causal leaves of 4 × 4")
        browser.select("#chapter", str(values[-1]))
        self.assertEqual(browser.count(), values[-1])
        self.assertEqual(self.trace["steps"][values[-1] - 1]["name"], "K", "a visit begins with its first load")

    def test_whose_sizes_the_tiles_are(self):
        self.assertIn("Br × Bc = 2 × 2: by the paper's sizes", browser.text(".sram"))
        self.assertIn("of M = 96 B, 24 elements", browser.text(".sram"))
        for sram, said, unsaid in [
                ({"capacity_bytes": 96, "budget": "strict"}, "the largest that fit M", "paper"),
                ({"capacity_bytes": 65536, "budget": "by hand"}, "chosen by hand", "paper"),
                ({"capacity_bytes": 65536, "budget": "by hand"}, "The bar is M/", "0.0")]:
            browser.open_text(joined([{**self.trace, "sram": sram}]))
            browser.press("g")
            self.assertIn(said, browser.text(".sram"))
            self.assertNotIn(unsaid, browser.text(".sram"))
        browser.open_text(joined([{**self.trace, "tiles": None}]))
        self.assertIn("without tiles", browser.text(".sram"))

    def test_zero_has_no_sign(self):
        self.assertEqual(browser.js("[grouped(-0), grouped(-0.4), grouped(-1200)]"), ["0", "0", "−1,200"])

    def test_says_each_step(self):
        browser.go(25)
        self.assertEqual(browser.text("#sentence"), "Step 25 of 186: load K rows 0–1: 4 elements from HBM "
                                                    "(row tile 0, column tile 0)")
        self.assertEqual(browser.js("document.getElementById('sentence').getAttribute('aria-live')"), "polite")

    def test_cell_by_click(self):
        browser.go(98)
        browser.look("click", *browser.look("point", "P", 3, 2))
        self.assertEqual(browser.js("stepper.active.cell"), {"name": "P", "i": 3, "j": 2})
        lit = browser.js("stepper.active.picture.sources.map((c) => [c.name, c.i, c.j])")
        self.assertEqual(lit, [["S", 3, 2], ["m_new", 3, 0]])
        self.assertIn("e^(", browser.text(".formula"))

    def test_fits_on_the_screen(self):
        for address in ("#step=98&cell=O.2.1", "#step=0"):
            browser.open_text(self.page, address)
            self.assertEqual(browser.look("misfits"), [])


class Numbers(Case):
    def open(self, **problem):
        self.trace = online_softmax(**problem)
        browser.open_text(joined([self.trace]))

    def test_minus_infinity_and_rows_that_see_nothing(self):
        self.open(hidden_rows=(3,))
        browser.press("g")
        self.assertEqual(browser.look("cell", "l", 3, 0)[1], 0)
        masked = next(k for k, s in enumerate(self.trace["steps"], 1)
                      if s["name"] == "S" and "-inf" in s.get("values", []) and s["rows"] == [2, 4])
        browser.js("stepper.active.choose({ chosenRow: 3 })")
        browser.go(masked)
        self.assertIn("(−∞, −∞)", browser.text(".row-pane"))
        browser.js("stepper.active.choose({ cell: { name: 'S', i: 3, j: 0 } })")
        self.assertIn("−∞", browser.text(".cell-card"))
        self.assertIn("masked: query 3 does not see key 0", browser.text(".cell-card"))
        browser.click(".as-table summary")
        browser.wait(0.2)
        self.assertIn("−∞ −∞", browser.text(".as-table table"))

    def test_nan(self):
        q = [[0.5, math.nan if i == 2 else 1.0] for i in range(8)]
        self.open(q=q)
        browser.press("g")
        self.assertEqual(browser.look("cell", "O", 2, 0)[1], "nan")
        self.assertNotEqual(browser.look("cell", "O", 1, 0)[1], "nan")
        browser.js("stepper.active.choose({ cell: { name: 'O', i: 2, j: 0 } })")
        self.assertIn("NaN", browser.text(".cell-card"))
        self.assertIn("NaN", browser.text(".stats"))

    def test_memory_not_yet_written(self):
        self.open()
        browser.js("stepper.active.choose({ cell: { name: 'O', i: 7, j: 0 } })")
        self.assertIn("not written", browser.text(".cell-card"))
        self.assertEqual(browser.look("cell", "O", 7, 0), [None, None])
        empty = self.color("O", 7, 0)
        browser.press("g")
        self.assertNotEqual(self.color("O", 7, 0), empty, "what is written looks otherwise")
        self.assertNotEqual(self.color("O", 0, 0), empty, "in HBM, too")

    def test_not_final_gone_and_masked_look_so(self):
        self.open()
        browser.press("g")
        final = self.hatched("O", 7)
        browser.go(100)
        self.assertGreater(self.hatched("O", 7), final + 4, "O of the last row is not final at step 100")
        browser.press("r")
        self.assertGreater(self.hatched("S", 0, 7), self.hatched("S", 7, 7) + 10, "masked")
        before = self.hatched("S", 7, 0)
        browser.press("g")
        self.assertGreater(self.hatched("S", 7, 0), before + 10, "was in SRAM and is gone")

    def color(self, name, i, j):
        return browser.look("pixels", name, i, j)[:3]

    def hatched(self, name, i, j=0):
        """How many pixels of the cell have another colour than most."""
        data = browser.look("pixels", name, i, j)
        colors = [tuple(data[k:k + 3]) for k in range(0, len(data), 4)]
        return len(colors) - max(colors.count(c) for c in set(colors))

    def test_a_cut_trace_says_so(self):
        trace = online_softmax()
        trace["steps"] = trace["steps"][:50]
        trace["cut"] = {"steps": 50, "of": 186, "why": "the page would be larger than 5 MB"}
        browser.open_text(joined([trace]))
        self.assertEqual(browser.text("#cut"),
                         "The trace is cut after 50 of 186 steps: the page would be larger than 5 MB")
        browser.press("g")
        self.assertIn("The trace is cut here", browser.text("#sentence"))


class Looks(Case):
    @classmethod
    def setUpClass(cls):
        cls.page = joined([online_softmax()])

    def test_theme(self):
        colors = {}
        for theme in ("light", "dark"):
            browser.open_text(self.page, f"#theme={theme}")
            colors[theme] = browser.js("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(colors["light"], colors["dark"])
        browser.press("t")
        self.assertEqual(browser.js("getComputedStyle(document.body).backgroundColor"), colors["light"])
        for scheme in ("dark", "light"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            browser.open_text(self.page)
            self.assertEqual(browser.js("getComputedStyle(document.body).backgroundColor"), colors[scheme])

    def test_contrast(self):
        for theme in ("light", "dark"):
            browser.open_text(self.page, f"#theme={theme}&step=98&cell=O.2.1&break=write")
            for ratio, text in browser.look("contrasts"):
                self.assertGreaterEqual(ratio, 4.5, (theme, text))

    def test_every_control_has_a_name_and_the_focus_reaches_it(self):
        browser.open_text(self.page, "#step=98&cell=O.2.1&break=write")
        tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        controls = [n for n in tree if n.get("role", {}).get("value") in
                    ("button", "combobox", "spinbutton", "slider", "checkbox", "listbox", "image", "img")]
        self.assertGreater(len(controls), 20)
        self.assertEqual([n["role"]["value"] for n in controls if not n.get("name", {}).get("value")], [])
        wanted = set(browser.look("focusable"))
        reached = set()
        browser.js("document.activeElement.blur()")
        for _ in range(len(wanted) + 3):
            browser.driver.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(browser.js("document.activeElement.dataset.tabbed"))
            outline = browser.js("document.activeElement.matches('body') || "
                                 "getComputedStyle(document.activeElement).outlineStyle")
            self.assertNotEqual(outline, "none", "the focus is seen")
        self.assertLessEqual(wanted, reached)


class Sizes(Case):
    """Zoomed in, which makes the page smaller, the picture keeps its size and the page scrolls."""

    def tearDown(self):
        browser.resize(1280, 720)
        super().tearDown()

    def test_zoomed(self):
        page = joined([online_softmax()])
        browser.open_text(page, "#step=98")
        width, height = self.picture()
        for size in ((1280, 480), (1024, 576), (853, 480), (640, 360)):
            browser.resize(*size)
            browser.open_text(page, "#step=98")
            w, h = self.picture()
            self.assertGreater(h, 0.6 * height, size)
            self.assertGreater(w, min(0.75 * width, 0.9 * size[0]), size)
            sideways = browser.js("document.scrollingElement.scrollWidth - innerWidth")
            self.assertLessEqual(sideways, 0, size)
            browser.js("scrollTo(0, 0)")
            foot = browser.js("document.querySelector('footer').getBoundingClientRect().bottom")
            self.assertLessEqual(foot, size[1], "the controls stay in sight")

    def picture(self):
        return browser.js("[stepper.active.picture.canvas.clientWidth, stepper.active.picture.canvas.clientHeight]")


class Skipping(unittest.TestCase):
    def test_without_chromium_nothing_passes(self):
        tests = Path(__file__).resolve().parent
        for name in ("test_stepper.py", "test_stepper_traces.py", "test_stepper_mutants.py"):
            run = subprocess.run([sys.executable, tests / name], capture_output=True, text=True,
                                 env={**os.environ, "PATH": "/nowhere"})
            self.assertEqual(run.returncode, 77, name)
            self.assertIn("SKIPPED: ", run.stdout)


class TwoTraces(Case):
    @classmethod
    def setUpClass(cls):
        cls.a, cls.b = online_softmax(), online_softmax(br=4, bc=4)
        cls.page = joined([cls.a, cls.b])

    def setUp(self):
        browser.open_text(self.page)

    def test_lock_step(self):
        for count in range(0, len(self.a["steps"]) + 1, 5):
            browser.go(count)
            a, b = (browser.look("visit", k) for k in (0, 1))
            if a and a["row"] >= 0:
                self.assertEqual((a["row"] // 2, a["col"] // 2), (b["row"], b["col"]), count)
        browser.press("g")
        self.assertEqual(browser.count(1), len(self.b["steps"]))
        browser.press("r")
        self.assertEqual(browser.count(1), 0)
        browser.press("2", "n", "n", "n")
        self.assertGreater(browser.count(0), 0, "the other one leads, too")

    def test_unlocked(self):
        browser.press("l", Keys.ARROW_RIGHT)
        self.assertEqual((browser.count(0), browser.count(1)), (1, 0))
        browser.press("2", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual((browser.count(0), browser.count(1)), (1, 2))
        address = browser.address()
        browser.open_text(self.page, address)
        self.assertEqual((browser.count(0), browser.count(1)), (1, 2))

    def test_difference(self):
        browser.press("g")
        total = lambda trace: sum(sum(s.get("hbm", [0])) for s in trace["steps"])
        read = [sum(s.get("hbm", [0])[0] for s in t["steps"]) for t in (self.a, self.b)]
        self.assertGreater(total(self.a), total(self.b))
        shown = browser.look("column", "#difference tbody tr", 1)
        self.assertEqual(shown, [f"{read[0]:,}", f"{read[1]:,}", f"−{read[0] - read[1]:,}"])

    def test_fits_on_the_screen(self):
        self.assertEqual(browser.look("misfits"), [])
        for tab, css in (("row", ".row-pane"), ("cell", ".cell-pane"), ("code", ".code")):
            browser.click(f"#tab-{tab}")
            heights = browser.js("[...document.querySelectorAll(arguments[0])].map((e) => e.offsetHeight)", css)
            self.assertGreater(min(heights), 60)

    def test_opens_another_page(self):
        browser.open_text(joined([self.a]))
        self.assertEqual(browser.js("stepper.views.length"), 1)
        for content in (joined([self.b]), json.dumps(self.b)):
            path = Path(browser.folder.name) / "other.html"
            path.write_text(content)
            browser.driver.find_element("id", "file").send_keys(str(path))
            browser.wait(0.3)
            lengths = browser.js("stepper.views.map((v) => v.trace.length)")
            self.assertEqual(lengths, [len(self.a["steps"]), len(self.b["steps"])])
        path.write_text("nothing of the kind")
        browser.driver.find_element("id", "file").send_keys(str(path))
        browser.wait(0.3)
        self.assertIn("holds no trace", browser.text("#notice"))


if __name__ == "__main__":
    unittest.main()
