# label: full
"""`step STAGE`: the trace in the page, replayed here, is the run: its values, its ledger, its places in the source."""
import json
import math
import re
import shlex
import struct
import unittest

import jsonschema

from support.command_line import ROOT, CommandLine, drawn, load, save

SCHEMA = json.loads((ROOT / "docs/schema/step.schema.json").read_text())
OUTPUTS = {"O": "o", "LSE": "lse", "dQ": "dq", "dK": "dk", "dV": "dv"}
MOST_BYTES = 5_000_000


def as_fp32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


class Replay:
    """What lies in HBM and SRAM while the steps of a trace go by."""

    def __init__(self, trace):
        self.trace, self.tiles = trace, {}
        self.format = float if trace["dtype"] == "fp64" else as_fp32  # digits that say which fp32 it is become that fp32
        self.tensors = [[math.nan] * (t["batch"] * t["heads"] * t["rows"] * t["cols"]) if t["values"] is None
                        else [self.number(x) for x in t["values"]] for t in trace["tensors"]]
        for step in trace["steps"]:
            self.apply(step)

    def number(self, x):
        return self.format(float(x))

    def places(self, step):
        (top, bottom), (left, right), width = step["rows"], step["cols"], self.trace["tensors"][step["tensor"]]["cols"]
        return [step["first"] + i * width + j for i in range(bottom - top) for j in range(right - left)]

    def apply(self, step):
        for tile in step.get("releases", []):
            del self.tiles[tile]
        for take in step.get("takes", []):
            assert take["tile"] not in self.tiles
            size = (take["rows"][1] - take["rows"][0]) * (take["cols"][1] - take["cols"][0])
            self.tiles[take["tile"]] = [math.nan] * size
        values = [self.number(x) for x in step["values"]] if "values" in step else None
        if step["do"] == "load":
            self.tiles[step["tile"]] = [self.tensors[step["tensor"]][at] for at in self.places(step)]
        elif step["do"] in ("store", "accumulate"):
            into = self.tensors[step["tensor"]]
            for at, x in zip(self.places(step), values or self.tiles[step["tile"]], strict=True):
                into[at] = self.format(into[at] + x) if step["do"] == "accumulate" and values is None else x
        elif values is not None:
            assert len(values) == len(self.tiles[step["tile"]])
            self.tiles[step["tile"]] = values
        for change in step.get("changes", []):
            into = self.tensors[change["tensor"]] if "tensor" in change else self.tiles[change["tile"]]
            assert change["first"] + len(change["values"]) <= len(into)
            into[change["first"]:change["first"] + len(change["values"])] = map(self.number, change["values"])

    def tensor(self, name):
        return next(v for t, v in zip(self.trace["tensors"], self.tensors) if t["name"] == name)


class Steps(CommandLine):
    def traces(self, *args):
        self.result("step", *args, "--out", "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertEqual(re.findall(r'(?:src|href)="(?!data:)[^"#]*', page), [], "a page needs no other file")
        self.assertLess(len(page.encode()), MOST_BYTES)
        text = re.search(r'<script type="application/json" id="traces">([^<]*)</script>', page)[1]
        traces = json.loads(text, parse_constant=lambda word: self.fail(f"{word} is no JSON"))
        for trace in traces:
            jsonschema.validate(trace, SCHEMA)
        return traces

    def check_run(self, *args):
        """The trace's end is what `run` gives, and its costs are the ledger's."""
        trace, = self.traces(*args)
        self.assertIsNone(trace["cut"])
        run = self.json("run", *args, "--out", "results")
        self.assertEqual(trace["problem"], run["problem"])
        replay = Replay(trace)
        for tensor, file in OUTPUTS.items():
            path = self.folder / "results" / f"{file}.npy"
            if path.exists() and tensor in [t["name"] for t in trace["tensors"]]:
                for a, b in zip(replay.tensor(tensor), load(path)[2], strict=True):
                    self.assertTrue(same(a, b), (tensor, a, b))
        passes = [run] if "ledger" in run else [run["forward"], run["backward"]]
        self.check_ledger(trace, passes)
        return trace

    def check_ledger(self, trace, passes):
        def total(key, n):
            return sum(step[key][n] for step in trace["steps"] if key in step)

        hbm = [p["ledger"]["hbm"] for p in passes]
        for n, way in enumerate(("read", "write", "rmw")):
            self.assertEqual(total("hbm", n), sum(sum(h[way].values()) for h in hbm), way)
        self.assertEqual(sum(s.get("hbm_bytes", 0) for s in trace["steps"]), sum(h["bytes"] for h in hbm))
        if trace["on"] != "cpu":
            return
        for n, way in enumerate(("read", "write")):
            self.assertEqual(total("sram", n), sum(p["ledger"]["sram"][way] for p in passes))
        for n, kind in enumerate(("matmul", "exp", "other")):
            self.assertEqual(total("flops", n), sum(p["ledger"]["flops"][kind] for p in passes))
        self.assertEqual(max(s["held"] for s in trace["steps"]), max(p["ledger"]["sram"]["peak_bytes"] for p in passes))

    def test_stages(self):
        save(self.folder / "slopes.npy", drawn(4, seed=3))
        options = ["--n", 10, "--nk", 13, "--d", 5, "--dv", 3, "--batch", 2, "--heads", 4, "--kv-heads", 2, "--causal",
                   "--window", "6,2", "--softcap", 3, "--alibi", "slopes.npy", "--dropout", 0.3]
        for stage in ("01", "02", "03", "04"):
            tiles = [] if stage == "01" else ["--br", 4, "--bc", 4]
            backward = ["--backward"] if stage in ("01", "04") else []
            for dtype in ("fp32", "fp64", "fp16"):
                with self.subTest(stage=stage, dtype=dtype):
                    trace = self.check_run(stage, *options, *tiles, *backward, "--dtype", dtype)
                    self.check_places(trace)

    def check_places(self, trace):
        """Each step's line is a line of the lesson that says what is done, under its banner."""
        words = {"load": "load(", "store": "store(", "accumulate": "accumulate("}
        for step in trace["steps"]:
            file, line = step["at"]
            text = trace["files"][file]["lines"][line - 1]
            self.assertEqual((ROOT / trace["files"][file]["path"]).read_text().splitlines()[line - 1], text)
            if step["name"] in ("slopes", "mask"):
                continue
            self.assertIn(words.get(step["do"], ""), text)
            if step["do"] == "compute" and step["name"] in ("S", "P", "O", "dS") and " = " in text:
                self.assertRegex(text, rf"\b{step['name']}")
        banners = {step["banner"] for step in trace["steps"]}
        self.assertLessEqual({"load", "scores", "mask", "softmax", "accumulate", "store"}, banners)

    def test_kernels(self):
        options = ["--on", "vgpu", "--n", 40, "--nk", 70, "--d", 64, "--heads", 2, "--kv-heads", 1, "--causal"]
        for stage, *more in (["01"], ["02"], ["03"], ["04"], ["04", "--backward", "--n", 20, "--nk", 24]):
            chosen = [o for o in options if not (more and o in ("--n", 40, "--nk", 70))] if more else options
            with self.subTest(stage=stage, more=more):
                trace = self.check_run(stage, *chosen, *more)
                self.assertTrue(trace["lanes"])
                moving = [s for s in trace["steps"] if "hbm" in s]
                self.assertGreater(sum("tensor" in s for s in moving), 0.9 * len(moving))
                self.assertEqual({trace["tensors"][s["tensor"]]["name"] for s in moving if "tensor" in s and s["hbm"][0]} & set("QKV"), set("QKV"))
                lanes = {}
                for step in trace["steps"]:
                    self.assertGreaterEqual(step["begin"], lanes.get(step["lane"], 0))
                    lanes[step["lane"]] = step["end"]

    def test_kernel_tiles(self):
        """Shared memory and registers are matrices: at its barrier K holds the keys, and a warp's S its scores."""
        trace, = self.traces("03", "--on", "vgpu", "--n", 32)
        replay = Replay({**trace, "steps": []})
        tiles, k = {}, replay.tensor("K")
        for step in trace["steps"]:
            tiles.update({t["name"]: t for t in step.get("takes", []) if t.get("space") == "shared"})
            replay.apply(step)
            if step["do"] == "mark" and step["name"] == "row tile":
                break
        self.assertEqual((tiles["K"]["rows"], tiles["K"]["cols"]), ([0, 128], [0, 64]))
        for step in trace["steps"][trace["steps"].index(step) + 1:]:
            replay.apply(step)
        held = replay.tiles[tiles["K"]["tile"]]
        self.assertEqual(held[:32 * 64], k)
        self.assertEqual(set(held[32 * 64:]), {0.0})

    def test_masked_rows(self):
        """Rows that see no key: −∞ in S, 0 in O, −∞ in LSE, told as JSON can."""
        trace = self.check_run("04", "--n", 9, "--nk", 5, "--d", 4, "--causal", "--br", 3, "--bc", 2)
        rows, = trace["visible"]
        self.assertEqual(rows[:4], ["00000"] * 4)
        self.assertEqual(rows[8], "11111")
        self.assertTrue(any("-inf" in s.get("values", []) for s in trace["steps"] if s["name"] == "S"))
        self.assertEqual(Replay(trace).tensor("LSE")[:4], [-math.inf] * 4)

    def test_one_head(self):
        """--head: what that head of the whole run does."""
        options = ["--n", 6, "--d", 4, "--heads", 4, "--kv-heads", 2, "--br", 2, "--bc", 3]
        trace, = self.traces("03", *options, "--head", 3)
        self.result("run", "03", *options, "--out", "results")
        self.assertEqual(Replay(trace).tensor("O"), load(self.folder / "results/o.npy")[2][3 * 6 * 4:])
        self.refused(["step", "03", *options, "--head", 4, "--out", "x.html"], "heads 0 to 3")
        self.refused(["step", "03", *options, "--head", 1, "--dropout", 0.5, "--out", "x.html"], "--head", "--dropout")

    def test_masked_rows_of_a_kernel(self):
        trace = self.check_run("04", "--on", "vgpu", "--n", 9, "--nk", 5, "--d", 64, "--causal")
        replay = Replay(trace)
        self.assertEqual(replay.tensor("LSE")[:4], [-math.inf] * 4)
        self.assertEqual(set(replay.tensor("O")[:4 * 64]), {0.0})

    def test_two_stages(self):
        first, second = self.traces("03", "--beside", "01", "--n", 8, "--d", 4, "--br", 2, "--bc", 2)
        self.assertEqual((first["stage"], second["stage"]), ("03_online_softmax", "01_materialized"))
        self.assertEqual((first["tiles"], second["tiles"]), ({"br": 2, "bc": 2}, None))
        q = [[t["values"] for t in trace["tensors"] if t["name"] == "Q"] for trace in (first, second)]
        self.assertEqual(*q)

    def test_command(self):
        """The command in a page makes the same page again."""
        first, = self.traces("03", "--causal", "--n", 12, "--softcap", 2)
        program, *words = first["command"].split()
        self.assertEqual(program, "flashsteps")
        again, = self.traces(*words[1:words.index("--out")])
        self.assertEqual(first, again)

    def test_names_of_files(self):
        """The command in a page is one for a shell."""
        name = "q 'é<b>&\".npy"
        for file in (name, "k.npy", "v.npy"):
            save(self.folder / file, drawn(4, 2))
        trace, = self.traces("03", "--q", name, "--k", "k.npy", "--v", "v.npy")
        words = shlex.split(trace["command"])
        self.assertEqual(words[words.index("--q") + 1], name)

    def test_large(self):
        """A large run is cut, says so, and its page stays small."""
        said = self.result("step", "03", "--n", 512, "--d", 64, "--br", 32, "--bc", 32, "--out", "page.html")
        self.assertIn("tiles of 32 x 32", said)
        trace, = self.traces("03", "--n", 512, "--d", 64, "--br", 32, "--bc", 32)
        self.assertEqual(len(trace["steps"]), trace["cut"]["steps"])
        self.assertGreater(trace["cut"]["of"], trace["cut"]["steps"])
        self.assertIn(f"the first of {trace['cut']['of']}", said)
        Replay(trace)
        self.assertNotIn("--head", trace["cut"]["why"])
        for n in (128, 256):
            kernel, = self.traces("03", "--n", n, "--on", "vgpu", "--heads", 2)
            self.assertGreater(kernel["cut"]["of"], kernel["cut"]["steps"])
            self.assertIn("--head 0", kernel["cut"]["why"])

    def test_sixty_four(self):
        """N = 64, d = 64 is whole: in tiles of 16, forward and backward, and as a kernel."""
        for args in (["03", "--br", 16, "--bc", 16], ["04", "--backward", "--br", 16, "--bc", 16], ["03", "--on", "vgpu"],
                     ["04", "--on", "vgpu", "--backward"]):
            trace, = self.traces(*args, "--n", 64, "--d", 64)
            self.assertIsNone(trace["cut"], args)

    def test_refusals(self):
        for args, *words in ((["03"], "--out"), (["03", "--on", "gpu"], "--on vgpu"), (["03", "--count-only"], "--count-only"),
                             (["03", "--allow-nonfinite"], "--allow-nonfinite", "run"),
                             (["03", "--beside", "09"], "09"), (["01", "--br", 2, "--bc", 2], "no tiles"),
                             (["03", "--n", 5000], "5000", "smaller"), (["03", "--example", "minilm"], "--head 0"), (["03", "--backward"], "04"),
                             (["03", "--on", "vgpu", "--d", 65], "65")):
            out = [] if words == ["--out"] else ["--out", "page.html"]
            self.refused(["step", *args, *out], *words)
            self.assertFalse((self.folder / "page.html").exists())
        self.refused(["step", "03", "--out", "."], "--out")
        self.refused(["step", "03", "--out", "/dev/null"], "--out", "device")

    def test_nonfinite(self):
        """Refused, in kernels too."""
        save(self.folder / "q.npy", ((4, 64), [math.nan] + [0.5] * (4 * 64 - 1)))
        save(self.folder / "k.npy", ((4, 64), [0.5] * (4 * 64)))
        for on in ("cpu", "vgpu"):
            self.refused(["step", "03", "--on", on, "--q", "q.npy", "--k", "k.npy", "--v", "k.npy", "--out", "p.html"], "nan")
            self.assertFalse((self.folder / "p.html").exists())

    def test_links(self):
        """The file that a link names is replaced; the link stays."""
        (self.folder / "link.html").symlink_to("page.html")
        (self.folder / "page.html").write_text("old")
        self.result("step", "03", "--out", "link.html")
        self.assertTrue((self.folder / "link.html").is_symlink())
        self.assertIn("traces", (self.folder / "page.html").read_text())


if __name__ == "__main__":
    unittest.main()
