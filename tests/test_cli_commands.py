#!/usr/bin/env python3
"""tour, why, diff and theorem2: what they print, as text and as JSON, and what they refuse."""
# label: full
import json
import os
import pathlib
import resource
import stat
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent
APP = os.environ.get("FLASH_APP", str(ROOT / "build/cpu/flashsteps-app"))
STAGES = sorted(path.parent.name for path in ROOT.glob("stages/*/stage.json"))


def run(*arguments, **environment):
    done = subprocess.run([APP, *arguments], capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def not_json(constant):
    raise ValueError(f"{constant} is not JSON")


class Case(unittest.TestCase):
    def text(self, *arguments):
        status, out, err = run(*arguments)
        self.assertEqual((status, err), (0, ""), arguments)
        return out

    def document(self, *arguments):
        document = json.loads(self.text(*arguments, "--json"), parse_constant=not_json)
        schema = json.loads((ROOT / f"docs/schema/{arguments[0]}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(document)
        return document

    def assert_refused(self, words, *arguments, **environment):
        status, out, err = run(*arguments, **environment)
        self.assertEqual((status, out), (2, ""), arguments)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(words, err)

    def assert_narrow(self, text, columns):
        for line in text.splitlines():
            self.assertLessEqual(len(line), columns, line)


class Tour(Case):
    @classmethod
    def setUpClass(cls):
        cls.tour = cls().document("tour")

    def test_every_stage_is_there_and_right(self):
        self.assertEqual([stop["stage"] for stop in self.tour["forward"]], STAGES)
        backward = [stage for stage in STAGES if list((ROOT / "stages" / stage).glob("*backward.hpp"))]
        self.assertEqual([stop["stage"] for stop in self.tour["backward"]], backward)
        for direction, outputs in (("forward", {"o", "lse"}), ("backward", {"dq", "dk", "dv"})):
            for stop in self.tour[direction]:
                self.assertEqual(set(stop["check"]), outputs)
                for check in stop["check"].values():
                    self.assertTrue(check["pass"])
                    self.assertGreater(check["error"], 0)  # fp32 beside fp64
                    self.assertLessEqual(check["error"], check["tolerance"])
                self.assertTrue(stop["closed_form"]["equal"])
                self.assertTrue(stop["ok"])

    def test_traffic_of_stage_01(self):
        heads, N, d = (self.tour["problem"][key] for key in ("heads", "n", "d"))
        self.assertEqual((heads, N, d), (12, 512, 32))
        forward, backward = (self.tour[key][0]["ledger"] for key in ("forward", "backward"))
        self.assertEqual(forward["hbm"]["elements"], heads * (4 * N * N + 4 * N * d))
        self.assertEqual(forward["hbm"]["bytes"], 4 * forward["hbm"]["elements"])
        self.assertEqual(backward["hbm"]["elements"], heads * (7 * N * N + 8 * N * d))
        self.assertEqual(forward["extra_hbm"]["elements"], heads * 2 * N * N)

    def test_memory_arithmetic(self):
        rows = {(row["n"], row["heads"]): row for row in self.tour["memory"]}
        self.assertEqual(set(rows), {(N, heads) for N in (8192, 65536) for heads in (1, 32)})
        for (N, heads), row in rows.items():
            self.assertEqual((row["d"], row["dtype"]), (128, "fp16"))
            S_and_P, rest = row["extra_hbm_bytes"]["01_materialized"], row["extra_hbm_bytes"]["04_recomputed_backward"]
            self.assertEqual(S_and_P, {"S": 2 * heads * N * N, "P": 2 * heads * N * N})
            self.assertEqual(rest, {"LSE": 4 * heads * N, "O_acc": 4 * heads * N * 128})

    def test_text(self):
        text = self.text("tour")
        self.assert_narrow(text, 120)
        for words in ("268 MB", "8.59 GB", "17.2 GB", "550 GB", "needs 1.18 MB", "SRAM 64KiB"):
            self.assertIn(words, text)
        for stop in self.tour["forward"] + self.tour["backward"]:
            self.assertIn(f"{stop['ledger']['hbm']['elements']:,}", text)
            self.assertIn(stop["meaning"][1:], " ".join(text.split()))
        self.assertNotIn("FAILS", text)


class Why(Case):
    def test_fits_one_screen_and_says_it_all(self):
        for stage in STAGES:
            text, why = self.text("why", stage), self.document("why", stage)
            self.assertLessEqual(text.count("\n"), 24, stage)
            self.assert_narrow(text, 100)
            for direction in filter(None, (why["forward"], why["backward"])):
                for words in ("change", "why", "costs", "law"):
                    self.assertIn(direction[words], " ".join(text.split()))
                self.assertTrue(direction["after"]["closed_form"]["equal"])
                self.assertIn(f"{direction['after']['hbm']['elements']:,}", text)
                self.assertEqual(direction["before"] is None, direction["extends"] is None)

    def test_the_problem_left_is_what_the_step_before_costs(self):
        self.assertEqual(self.document("why", "3")["forward"]["problem_left"], self.document("why", "2")["forward"]["costs"])
        why = self.document("why", "04")
        self.assertEqual(why["backward"]["before"]["stage"], "01_materialized")
        self.assertEqual(why["forward"]["before"], self.document("why", "03")["forward"]["after"])

    def test_the_texts_stand_in_the_source(self):
        for stage in STAGES:
            why = self.document("why", stage)["forward"]
            source = " ".join((ROOT / why["source"]).read_text().replace("\n// ", " ").split())
            for words in ("change", "why", "costs", "law"):
                self.assertIn(why[words], source)

    def test_the_command_named_counts_the_same(self):
        text = self.text("why", "03")
        command = text.splitlines()[-1].split()
        self.assertEqual(command[0], "./flashsteps")
        run_json = json.loads(self.text(*command[1:], "--json"))
        self.assertEqual(run_json["ledger"]["hbm"]["elements"], self.document("why", "03")["forward"]["after"]["hbm"]["elements"])

    def test_refusals(self):
        self.assert_refused("STAGE", "why")
        self.assert_refused("no such stage", "why", "99")
        self.assert_refused("06_fa3_pipelines", "why", "06")
        self.assert_refused("3; rm", "why", "3; rm")


class Diff(Case):
    def assert_sums(self, comparison):
        for side in ("a", "b"):
            for key in ("read", "written", "bytes_read", "bytes_written"):
                of_tensors = sum(pair[side][key] for pair in comparison["tensors"].values())
                self.assertEqual(of_tensors, comparison["total"][side][key])
        for pair in [*comparison["tensors"].values(), comparison["total"]]:
            moved = {side: pair[side]["read"] + pair[side]["written"] for side in ("a", "b")}
            self.assertEqual(pair["change"]["elements"], moved["b"] - moved["a"])

    def test_neighbours(self):
        diff = self.document("diff", "2", "online_softmax")
        self.assertEqual((diff["a"], diff["b"]), ("02_tiling", "03_online_softmax"))
        self.assertIsNone(diff["backward"])
        forward = diff["forward"]
        self.assertTrue(forward["diff"].startswith("--- stages/02_tiling/forward.hpp\n+++ stages/03_online_softmax/forward.hpp\n@@"))
        self.assertIn("\n-namespace flash::tiling {", forward["diff"])
        self.assertIn("\n+namespace flash::online_softmax {", forward["diff"])
        self.assertEqual(forward["tiles"]["a"], forward["tiles"]["b"])
        self.assert_sums(forward)
        N = diff["problem"]["n"]
        self.assertEqual(forward["tensors"]["S"]["a"]["read"], 2 * N * N)
        self.assertEqual(forward["tensors"]["S"]["b"], {"read": 0, "written": 0, "bytes_read": 0, "bytes_written": 0})
        self.assertEqual(forward["tensors"]["P"]["change"], {"elements": -2 * N * N, "bytes": -4 * N * N})
        whole = self.document("why", "03")["forward"]
        self.assertEqual(forward["total"]["change"]["elements"],
                         whole["after"]["hbm"]["elements"] - whole["before"]["hbm"]["elements"])

    def test_indentation_alone_is_no_difference(self):
        for a in STAGES:
            for b in STAGES:
                lines = self.document("diff", a, b)["forward"]["diff"].splitlines()[2:]
                for before, after in zip(lines, lines[1:]):
                    if before.startswith("-") and after.startswith("+"):
                        self.assertNotEqual("".join(before[1:].split()), "".join(after[1:].split()))

    def test_not_neighbours_both_directions(self):
        diff = self.document("diff", "01", "04")
        for direction in ("forward", "backward"):
            self.assert_sums(diff[direction])
            self.assertIn(f"+++ stages/04_recomputed_backward/{direction}.hpp", diff[direction]["diff"])
            self.assertIsNone(diff[direction]["tiles"]["a"])
        back = self.document("diff", "04", "01")
        self.assertEqual(back["forward"]["total"]["change"]["bytes"], -diff["forward"]["total"]["change"]["bytes"])

    def test_the_same_stage(self):
        diff = self.document("diff", "4", "04")
        for direction in ("forward", "backward"):
            self.assertEqual(diff[direction]["diff"], "")
            self.assertEqual(diff[direction]["total"]["change"], {"elements": 0, "bytes": 0})
        self.assertIn("no difference", self.text("diff", "4", "04"))

    def test_text(self):
        text = self.text("diff", "03", "04")
        self.assert_narrow(text, 121)  # a source line and its sign
        self.assertIn("./flashsteps diff 01 04", text)
        self.assertIn("HBM traffic, forward", text)

    def test_refusals(self):
        self.assert_refused("B", "diff", "3")
        self.assert_refused("no such stage", "diff", "3", "--", "--help")
        self.assert_refused("diffutils", "diff", "2", "3", PATH="/nowhere")


class Theorem2(Case):
    def sanitized(self):
        cache = pathlib.Path(os.environ.get("FLASH_BUILD_DIR", "/nowhere"), "CMakeCache.txt")
        return cache.exists() and "FLASH_SANITIZE:STRING=\n" not in cache.read_text()

    def test_laws_come_out_exactly_and_in_time(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        theorem2 = self.document("theorem2")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not self.sanitized():  # 5 s of two free cores are 10 s; twice that where others compute too
            self.assertLessEqual(after.ru_utime - before.ru_utime, 20)
        schedules = {schedule["name"]: schedule for schedule in theorem2["schedules"]}
        self.assertEqual({name: schedule["coefficients"] for name, schedule in schedules.items()},
                         {"03_forward": [12, 16, 3, 2], "04_forward": [12, 8, 3, 1], "04_backward": [20, 4, 7, 0],
                          "algorithm_4_backward": [20, 8, 7, 0], "05_forward": [8, 0, 2, 1],
                          "05_backward": [16, 8, 9, 1]})
        self.assertEqual({schedule["name"]: schedule["coefficients"] for schedule in theorem2["one_sided"]},
                         {"03_forward_one_sided": [6, 8, 3, 2], "05_forward_one_sided": [4, 0, 2, 1]})
        for schedule in schedules.values():
            self.assertTrue(schedule["exact"] and schedule["ok"])
            self.assertLessEqual(schedule["residual"], 1e-12)
            self.assertEqual(schedule["outside_sandwich"], 0)
            self.assertLessEqual(schedule["ratio"]["proved"][0], schedule["ratio"]["min"])
            self.assertLessEqual(schedule["ratio"]["max"], schedule["ratio"]["proved"][1])
            for axis, exponent in (("N", 2), ("d", 2), ("M", -1)):
                self.assertLessEqual(abs(schedule["exponents"][axis] - exponent), 0.03)
        self.assertTrue(theorem2["negative_control"]["failed_as_it_must"])
        self.assertFalse(theorem2["negative_control"]["exact"])
        for crossover in theorem2["crossover"]["against_01"]:
            self.assertLessEqual(abs(crossover["M_over_d²"] - 3), 0.15)
            self.assertLess(crossover["elements"]["03"], crossover["elements"]["other"])
        self.assertEqual(theorem2["crossover"]["against_02"]["M_over_d²"] * 64, 4)
        self.assertTrue(theorem2["ok"])
        self.constants(theorem2["limiting_constants"])
        self.equal_memory(theorem2["equal_memory"])
        self.published(theorem2["published"])

    def constants(self, limits):
        self.assertEqual([row["constant"] for row in limits["rows"]], [12, 8, 6, 4])
        self.assertEqual((limits["loop_order"], limits["all_of_M"]), ([1.5, 1.5], [2, 2]))

    def equal_memory(self, found):
        """The loop order gives 3/2 and the shape of the blocks 2, but for whole turns and what must move once."""
        N, d, M = found["N"], found["d"], found["M"]
        self.assertEqual(M, 8 * d * d)
        passes = {row["name"]: row for row in found["passes"]}
        elements = {name: row["elements"] for name, row in passes.items()}
        self.assertEqual(elements["01 materialized, ideal"], 4 * N * N + 4 * N * d)
        fa1, fa2 = "03 K, V stay", "05a Q, O stay, roles swapped"
        capped, alone = "05a Q, O stay, Algorithm 1's blocks", "05a Q, O stay, all of M for them"
        Tc = -(-N // passes[fa1]["tiles"]["bc"])
        self.assertEqual(elements[fa1], 3 * N * d + 2 * N + Tc * N * (3 * d + 4))
        for name in (fa2, capped, alone):
            Tr = -(-N // passes[name]["tiles"]["br"])
            self.assertEqual(elements[name], 2 * N * d + N + 2 * Tr * N * d)
        self.assertEqual(passes[capped]["tiles"]["br"], d)
        self.assertEqual(found["order"], elements[fa1] / elements[fa2])
        self.assertEqual(found["shape"], elements[capped] / elements[fa2])
        self.assertLess(abs(found["order"] - 3 / 2), 0.05)
        for two in (found["shape"], found["all_of_M"]["K, V"], found["all_of_M"]["Q, O"]):
            self.assertLess(abs(two - 2), 0.2)
        for row in passes.values():
            if row["tiles"] and not row["name"].startswith("02"):  # it is held to M: the tiles that stay and pass fit
                self.assertLessEqual(2 * d * (row["tiles"]["br"] + row["tiles"]["bc"]), M)

    def published(self, figures):
        self.assertEqual([figure["printed_GB"] for figure in figures], [40.3, 35.3, 4.4])
        for figure in figures:
            self.assertIn("one of several accountings that fit", figure["remark"])
            self.assertIn("edition", figure["source"])
        today = next(a for a in figures[0]["accountings"] if a["name"].startswith("PyTorch today"))
        measured = next(a for a in figures[0]["accountings"] if a["measured"])
        NN, Nd = 2 * 1024 * 1024**2, 2 * 1024 * 1024 * 64  # bytes of 64 x 16 heads in fp16
        self.assertEqual((today["read_bytes"], today["write_bytes"]), (11 * NN + 8 * Nd, 7 * NN + 4 * Nd))
        self.assertEqual((measured["read_bytes"], measured["write_bytes"]), (24_697_000_000, 15_573_000_000))

    def test_text(self):
        text = self.text("theorem2")
        self.assert_narrow(text, 120)
        for words in ("03_forward", "exact", "It fails, as it must", "floor 4Nd", "Predict, then run",
                      "printed: 40.3 GB", "one of several accountings that fit", "24.70", "15.57"):
            self.assertIn(words, text)


class Plot(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.svg = self.path / "a b's.svg"

    def files(self):
        return sorted(path.name for path in self.path.rglob("*") if path.is_file())

    def fake_gnuplot(self, body):
        """A PATH with this gnuplot alone."""
        folder = self.path / "bin"
        folder.mkdir()
        program = folder / "gnuplot"
        program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(folder)

    def test_a_figure_that_can_be_read(self):
        self.text("theorem2", "--plot", str(self.svg))
        self.assertEqual(self.files(), [self.svg.name])
        root = ElementTree.parse(self.svg).getroot()
        self.assertTrue(root.tag.endswith("}svg"))
        words = " ".join(" ".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text"))
        words = " ".join(words.split())
        for part in ("M, size of the SRAM [elements]", "HBM reads + writes [elements]", "03 below 01 from M =",
                     "03 below 02 from M =", "floor of a forward pass: 4Nd", "M = Nd"):
            self.assertIn(part, words)

    def test_without_gnuplot(self):
        self.assert_refused("gnuplot is not installed", "theorem2", "--plot", str(self.svg), PATH="/nowhere")
        self.assertEqual(self.files(), [])

    def test_a_failure_leaves_what_was_there(self):
        path = self.fake_gnuplot("echo '<svg>half'; echo no such font >&2; exit 1")
        self.svg.write_text("before")
        self.assert_refused("no such font", "theorem2", "--plot", str(self.svg), PATH=path)
        self.assertEqual(self.files(), [self.svg.name, "gnuplot"])
        self.assertEqual(self.svg.read_text(), "before")

    def test_half_a_figure_is_none(self):
        path = self.fake_gnuplot("echo '<svg>half'")
        self.assert_refused("gnuplot", "theorem2", "--plot", str(self.svg), PATH=path)
        self.assertEqual(self.files(), ["gnuplot"])

    def test_names_that_are_refused(self):
        self.assert_refused("SVG", "theorem2", "--plot", str(self.path / "f.png"))
        (self.path / "file").write_text("")
        self.assert_refused("file", "theorem2", "--plot", str(self.path / "file" / "f.svg"))
        self.assertEqual(self.files(), ["file"])


if __name__ == "__main__":
    unittest.main()
