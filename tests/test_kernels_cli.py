#!/usr/bin/env python3
"""Kernels on the command line: `run --on vgpu|gpu`, `probe`, `trace`, the tour's last table; what is refused.

What a GPU does is pretended by host_kernels/pretended_cuda.cpp; the virtual GPU and the kernels are the build's own.
"""
# label: full
import itertools
import json
import math
import os
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True  # the sources stay as they are
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from command_line import ROOT, attention, drawn, load, save  # noqa: E402
from device import BUILD, Kernels, PretendedGpu  # noqa: E402

CACHE = BUILD / "CMakeCache.txt"
ASAN = CACHE.exists() and "FLASH_SANITIZE:STRING=address" in CACHE.read_text()
PROGRAMS = [("01", False), ("01", True), ("02", False), ("03", False), ("04", False), ("04", True)]
TILED = ["02", "03", "04"]


class VirtualGpu(Kernels):
    def passes(self, document):
        return [document[part] for part in ("forward", "backward") if part in document] or [document]

    def test_every_program(self):
        save(self.folder / "a.npy", drawn(4))
        heads = ["--heads", "4", "--kv-heads", "2"]
        spread = [[], ["--causal"], ["--window", "9,3", *heads], ["--alibi", "a.npy", *heads, "--softcap", "2"],
                  ["--scale", "0.2", "--d", "128"]]
        for (stage, backward), options in itertools.product(PROGRAMS, spread):
            args = ["run", stage, "--n", "33", "--nk", "40", *options, *["--backward"] * backward]
            with self.subTest(args=args):
                document = self.json(*args, "--on", "vgpu", "--check")
                self.validate("run", document)
                self.assertEqual((document["on"], document["dtype"]), ("vgpu", "fp16"))
                for n, part in enumerate(self.passes(document)):
                    self.assertEqual(part["vgpu"]["reports"], [])
                    self.assertEqual((part["vgpu"]["completion"], part["vgpu"]["seed"]), ("late", 1))
                    self.assertGreater(part["vgpu"]["ctas"], 0)
                    self.assertTrue(all((ROOT / line["file"]).exists() for line in part["vgpu"]["lines"]))
                    if stage in TILED:
                        self.assertTrue(part["closed_form"]["equal"])
                        self.same_as_on_the_cpu(args, part, document, n)
                    else:
                        self.assertIsNone(part["closed_form"])
                        self.assertIn("without tiles", part["why"])

    def same_as_on_the_cpu(self, args, part, document, n):
        tiles = part.get("tiles") or document["tiles"]
        on_cpu = self.json(*args, "--dtype", "fp16", "--br", tiles["br"], "--bc", tiles["bc"])
        counted = self.passes(on_cpu)[n]["ledger"]
        self.assertEqual(part["ledger"]["hbm"], counted["hbm"])
        self.assertEqual(part["ledger"]["extra_hbm"], counted["extra_hbm"])

    def test_values(self):
        shapes = [(1, 4, 5, 64), (1, 2, 7, 64), (1, 2, 7, 64)]
        q, k, v = (drawn(*shape, seed=seed) for seed, shape in enumerate(shapes, 1))
        dout = drawn(*shapes[0], seed=4)
        for name, array in (("q", q), ("k", k), ("v", v), ("do", dout)):
            save(self.folder / f"{name}.npy", array)
        wanted = attention(q, k, v, dout, lambda b, h, i, j: j <= i + 2)
        files = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--causal"]
        for stage, backward in PROGRAMS:
            grad = ["--backward", "--dout", "do.npy"] if backward else []
            self.result("run", stage, *files, *grad, "--on", "vgpu", "--out", "out")
            for name in ("o", "lse", "dq", "dk", "dv")[:5 if backward else 2]:
                descr, shape, values = load(self.folder / f"out/{name}.npy")
                self.assertEqual(descr, "<f4")
                self.near(values, wanted[name], 6e-3)
            shutil.rmtree(self.folder / "out")

    def test_a_row_that_sees_no_key(self):
        for stage, backward in PROGRAMS:
            grad = ["--backward"] if backward else []
            sizes = ["--n", "5", "--nk", "3", "--causal"]
            self.result("run", stage, *sizes, *grad, "--on", "vgpu", "--out", "out", "--check")
            self.assertEqual(load(self.folder / "out/lse.npy")[2][:2], [-math.inf] * 2)
            self.assertEqual(load(self.folder / "out/o.npy")[2][:128], [0.0] * 128)

    def test_empty(self):
        empty = (["--n", "0"], ["--n", "3", "--nk", "0"], ["--batch", "0"])
        for (stage, backward), sizes in itertools.product(PROGRAMS, empty):
            document = self.json("run", stage, *sizes, *["--backward"] * backward, "--on", "vgpu", "--check")
            self.validate("run", document)
            for part in self.passes(document):
                self.assertEqual(part["vgpu"]["reports"], [])

    def test_nonfinite(self):
        shape, values = drawn(6, 64, seed=2)
        values[64 * 3] = math.nan  # key 3: rows 3, 4, 5 see it
        save(self.folder / "k.npy", (shape, values))
        for name in "qv":
            save(self.folder / f"{name}.npy", drawn(6, 64))
        files = ["run", "03", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--causal", "--on", "vgpu"]
        self.refused(files, "k[0,0,3,0] is nan", "--allow-nonfinite")
        self.result(*files, "--allow-nonfinite", "--check", "--out", "out")
        values = load(self.folder / "out/o.npy")[2]
        self.assertTrue(all(map(math.isfinite, values[:192])) and all(map(math.isnan, values[192:])))

    def test_overflow(self):
        for name in "qk":
            save(self.folder / f"{name}.npy", ((4, 64), [100.0] * 256))
        save(self.folder / "v.npy", drawn(4, 64))
        files = ["--q", "q.npy", "--k", "k.npy", "--v", "v.npy"]
        self.refused(["run", "01", *files, "--on", "vgpu"], "65504", "03_online_softmax")

    def test_orders_of_execution(self):
        def o(*args):
            document = self.json("run", "03", "--n", "70", "--on", "vgpu", "--out", "out", *args)
            return document["vgpu"], load(self.folder / "out/o.npy")
        first = o()
        for completion, seed in itertools.product(("early", "late", "random"), ("0", "1", "18446744073709551615")):
            vgpu, values = o("--completion", completion, "--vgpu-seed", seed)
            self.assertEqual((vgpu["completion"], vgpu["seed"], vgpu["reports"]), (completion, int(seed), []))
            self.assertEqual(values, first[1])

    def test_text(self):
        text = self.result("run", "04", "--n", "70", "--backward", "--on", "vgpu", "--check")
        for words in ("on the virtual GPU", "the kernels'", "the count equals it", "wavefronts", "sectors", "mma.sync",
                      "0 reports", "fp64 oracle"):
            self.assertIn(words, text)


class Reports(Kernels):
    def test_a_race_fails_the_run(self):
        folder = self.kernels(copied=[("vgpu", "04_recomputed_backward_backward.so")])
        self.compile("wrong.cu", folder / "vgpu/04_recomputed_backward_forward.so", "-DRACE")
        for backward in ([], ["--backward"]):
            done = self.start("run", "04", "--n", "8", *backward, "--on", "vgpu", "--json", "--check", "--out", "out")
            self.assertEqual(done.returncode, 1, done.stderr)
            first, *rest = done.stderr.splitlines()
            self.assertRegex(first, r"\Aflashsteps: the virtual GPU has \d+ reports? .*04_recomputed_backward")
            self.assertIn("[race]", rest[0])
            self.assertIn("tests/host_kernels/wrong.cu:", done.stderr)
            document = json.loads(done.stdout)
            self.validate("run", document)
            vgpu = document["forward"]["vgpu"] if backward else document["vgpu"]
            self.assertEqual(vgpu["reports"][0]["kind"], "race")
            self.assertNotIn("backward", document)
            self.assertNotIn("check", document)
            self.assertEqual(self.files(), {})
        for command in (["trace", "--out", "t.json"], ["step", "--on", "vgpu", "--out", "s.html"]):
            done = self.start(command[0], "04", "--n", "8", *command[1:])
            self.assertEqual(done.returncode, 1)
            self.assertIn("[race]", done.stderr)

    def test_wrong_numbers_fail_the_check(self):
        folder = self.kernels()
        self.compile("wrong.cu", folder / "vgpu/04_recomputed_backward_forward.so")
        done = self.start("run", "04", "--n", "8", "--on", "vgpu", "--check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aflashsteps: o")
        self.result("run", "04", "--n", "8", "--on", "vgpu")
        self.refused(["run", "04", "--n", "8", "--d", "128", "--on", "vgpu"], "d = 128", "take 64;")

    def test_the_tour_fails_with_them(self):
        folder = self.kernels()
        self.compile("wrong.cu", folder / "vgpu/04_recomputed_backward_forward.so", "-DRACE")
        shutil.copy(BUILD / "kernels/vgpu/04_recomputed_backward_backward.so", folder / "vgpu")
        done = self.start("tour")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILS: 04_recomputed_backward, forward", done.stdout)


class Refusals(Kernels):
    def test_what_kernels_do_not_take(self):
        save(self.folder / "m.npy", ((8, 8), [1] * 64), "|u1")
        on = ["--n", "8", "--on", "vgpu"]
        for dtype in ("fp64", "fp32", "bf16"):
            self.refused(["run", "03", *on, "--dtype", dtype], dtype, "03_online_softmax", "--dtype fp16", "--on cpu")
        for d in ("1", "32", "63", "256", "1000"):
            for stage in ("01", "02", "03", "04"):
                self.refused(["run", stage, *on, "--d", d], f"d = {d}", "64, 128", "--on cpu")
        self.refused(["run", "03", *on, "--dv", "32"], "dv = 32", "--dv 64")
        self.refused(["run", "03", *on, "--mask", "m.npy"], "mask", "03_online_softmax", "--on cpu")
        self.refused(["run", "03", *on, "--dropout", "0.5"], "dropout", "03_online_softmax", "--on cpu")
        self.refused(["run", "03", *on, "--first-touch"], "first-touch", "--on cpu")
        for option in (["--br", "4", "--bc", "4"], ["--bc", "4"], ["--sram", "64KiB"], ["--budget", "paper"],
                       ["--block-mask", "m.npy"], ["--count-only"]):
            self.refused(["run", "03", *on, *option], option[0], "--on vgpu", "--on cpu")
        self.refused(["run", "03", *on, "--steps"], "--steps", "--on cpu")
        for stage in ("02", "03"):
            self.refused(["run", stage, *on, "--backward"], stage, "04_recomputed_backward")
        for example in ("hand", "minilm"):
            self.refused(["run", "03", "--on", "vgpu", "--example", example], "64, 128")

    def test_options_of_other_backends(self):
        for on in ("cpu", "gpu"):
            for option in (["--completion", "late"], ["--vgpu-seed", "3"]):
                self.refused(["run", "03", "--on", on, *option], option[0], f"--on {on}", "--on vgpu")
        for on in ("cpu", "vgpu"):
            self.refused(["run", "03", "--on", on, "--device", "0"], "--device", f"--on {on}", "--on gpu")
        self.refused(["run", "03", "--on", "gpu", "--device", "-1"], "--device -1", "0 or more")
        self.refused(["run", "03", "--on", "vgpu", "--completion", "soon"], "soon", "early, late or random")
        self.refused(["run", "03", "--on", "vgpu", "--vgpu-seed", "-1"], "--vgpu-seed")

    def test_memory(self):
        self.refused(["run", "01", "--n", "10000000", "--nk", "10000000", "--on", "vgpu"], "S and P among them",
                     "400005120000000 bytes", " free", "03")
        self.refused(["run", "03", "--n", "10000000", "--on", "vgpu"], "bytes", " free")

    @unittest.skipIf(ASAN, "the address sanitizer loses its way where fibers throw")
    def test_launches_that_no_device_takes(self):
        folder = self.kernels()
        for y, z, threads, smem, words in ((65536, 1, 32, 0, ["65536", "65535", "smaller problem"]),
                                           (1, 70000, 32, 0, ["70000", "65535"]),
                                           (1, 1, 2048, 0, ["2048 threads", "1024"]),
                                           (1, 1, 32, 65537, ["65537 bytes of shared memory", "65536"])):
            flags = [f"-DGRID_Y={y}", f"-DGRID_Z={z}", f"-DTHREADS={threads}", f"-DSMEM={smem}"]
            self.compile("launch.cu", folder / "vgpu/03_online_softmax_forward.so", *flags)
            self.refused(["run", "03", "--n", "8", "--on", "vgpu", "--out", "out"], "test::nothing", "sm_75", *words)

    def test_softcap_too_small_for_fp16(self):
        asked = ["run", "01", "--dtype", "fp16", "--n", "8", "--backward", "--softcap"]
        for on in ("cpu", "vgpu"):
            self.refused([*asked, "1e-6", "--on", on], "softcap 1e-06", "2^-14", "04_recomputed_backward")
            self.result(*asked, "7e-5", "--on", on, "--check")

    def test_what_is_not_there(self):
        self.environment["FLASH_KERNELS"] = "/nowhere"
        self.refused(["run", "03", "--on", "vgpu"], "FLASH_KERNELS names /nowhere", "no folder vgpu", "--on cpu")
        self.refused(["run", "03", "--on", "gpu"], "this build has no GPU kernels", "cuda preset", "--on vgpu")
        self.refused(["bench"], "this build has no GPU kernels", "cuda preset")
        tour = self.json("tour")
        self.validate("tour", tour)
        self.assertEqual(tour["kernels"]["programs"], [])
        self.assertIn("FLASH_KERNELS names /nowhere", self.result("tour"))
        folder = self.kernels()
        self.refused(["run", "03", "--on", "vgpu"], "forward kernels of stage 03_online_softmax", "has none")
        (folder / "vgpu/03_online_softmax_forward.so").write_text("no object")
        self.refused_loading(["run", "03", "--on", "vgpu"], "can't be loaded")
        shutil.copy(BUILD / "libflash_gpu.so", folder / "vgpu/03_online_softmax_forward.so")
        self.refused_loading(["run", "03", "--on", "vgpu"], "it has no flash_module")
        shutil.copy(BUILD / "kernels/vgpu/01_materialized_forward.so", folder / "vgpu/03_online_softmax_forward.so")
        self.refused(["run", "03", "--on", "vgpu"], "holds the kernels of 01_materialized/forward", "build again")
        self.assertEqual(self.start("probe").returncode, 0)

    def refused_loading(self, args, words):
        """The dynamic linker's own words name the file."""
        done = self.start(*args)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn(words, done.stderr)
        self.assertIn("build again", done.stderr)


class OnAPretendedGpu(PretendedGpu):
    def test_run(self):
        for stage, backward in PROGRAMS:
            args = ["run", stage, "--n", "33", "--causal", "--check", *["--backward"] * backward]
            document = self.json(*args, "--on", "gpu", "--out", "gpu")
            self.validate("run", document)
            for part in (document["forward"], document["backward"]) if backward else (document,):
                self.assertIsNone(part["ledger"])
                self.assertIn("--on vgpu", part["why"])
            self.result(*args, "--on", "vgpu", "--out", "vgpu")
            for name in os.listdir(self.folder / "vgpu"):
                self.assertEqual(load(self.folder / "gpu" / name), load(self.folder / "vgpu" / name))
        self.assertIn("on pretended GPU (sm_90)", self.result("run", "03", "--n", "33", "--on", "gpu"))

    def test_refusals(self):
        self.refused(["run", "03", "--on", "gpu", "--device", "1"], "--device 1", "0 to 0")
        grouped = ["run", "04", "--n", "8", "--heads", "4", "--kv-heads", "2", "--on", "gpu", "--deterministic"]
        self.refused([*grouped, "--backward"], "--deterministic", "4 query heads", "2 KV heads", "--on vgpu")
        self.result(*grouped)
        self.environment["FLASH_PRETENDED_BYTES"] = "1000000"
        self.refused(["run", "01", "--n", "600", "--on", "gpu"], "1747200 bytes", "S and P", "1000000 free")
        self.refused(["bench", "01", "--n", "600", "--batch", "1", "--heads", "1"], "S and P", "1000000 free")
        for count, reason in (("0", "there is none"), ("-1", "no CUDA-capable device is detected")):
            self.environment["FLASH_PRETENDED_GPUS"] = count
            for command in (["run", "03", "--on", "gpu"], ["bench"]):
                self.refused(command, "CUDA finds none", reason, "--on vgpu")

    @staticmethod
    def has_source(side, program, extension):
        stage, direction = program["stage"], program["direction"]
        name = stage + "_backward" * (direction == "backward") if "/" in stage else f"{stage}/{direction}"
        return (ROOT / side / f"{name}.{extension}").exists()

    def test_probe(self):
        probe = self.json("probe")
        self.validate("probe", probe)
        self.assertEqual(probe["gpus"][0]["name"], "pretended GPU")
        for program in probe["programs"]:
            for backend in ("vgpu", "gpu"):
                exists = self.has_source("cuda", program, "cu")
                self.assertEqual(program[backend]["dtypes"]["fp16"]["runs"], exists, program)
                self.assertFalse(program[backend]["dtypes"]["fp32"]["runs"])
                self.assertEqual({64, 128} <= set(program[backend]["head_sizes"] or []), exists)
            self.assertEqual(program["cpu"]["dtypes"]["fp64"]["runs"], self.has_source("stages", program, "hpp"))
        self.assertIn("pretended GPU (sm_90): 4 SMs, 1.07 GB", self.result("probe"))


class Others(Kernels):
    def test_probe_without_a_gpu(self):
        self.kernels(copied=[("vgpu", "03_online_softmax_forward.so")])
        probe = self.json("probe")
        self.validate("probe", probe)
        self.assertIsNone(probe["cuda"])
        self.assertIn("cuda preset", probe["gpu"]["why"])
        runs = {(p["stage"][:2], p["direction"]): p["vgpu"]["dtypes"]["fp16"] for p in probe["programs"]}
        self.assertTrue(runs["03", "forward"]["runs"])
        self.assertIn("no kernels", runs["04", "backward"]["why"])
        self.assertIn("no backward pass", runs["02", "backward"]["why"])
        text = self.result("probe")
        for words in ("virtual GPU  yes", "not in this build", "fp16, d 64 128", "Options", "softcap"):
            self.assertIn(words, text)

    def test_trace(self):
        for stage, backward in PROGRAMS:
            text = self.result("trace", stage, "--n", "33", *["--backward"] * backward, "--out", "deep/t.json")
            self.assertIn("a shape, not a prediction", text)
            document = json.loads((self.folder / "deep/t.json").read_text())
            self.validate("trace", document)
            if stage in TILED:
                slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
                self.assertTrue(any(event["name"].startswith("mma.sync") for event in slices))
        self.assertEqual(self.result("trace", "03", "--on", "vgpu", "--n", "33", "--out", "t.json"),
                         self.result("trace", "03", "--n", "33", "--out", "t.json"))
        for on in ("cpu", "gpu"):
            self.refused(["trace", "03", "--on", on, "--out", "u.json"], on, "--on vgpu")
        self.refused(["trace", "03"], "--out")
        self.refused(["trace", "03", "--out", "deep/"], "folder")
        self.refused(["trace", "03", "--d", "7", "--out", "u.json"], "d = 7")

    def test_measured_files(self):
        files = sorted((ROOT / "docs/measured").glob("*.json"))
        for file in files:
            self.validate("bench", json.loads(file.read_text()))
        self.assertTrue(files)

    def test_tour(self):
        tour = self.json("tour")
        self.validate("tour", tour)
        programs = tour["kernels"]["programs"]
        self.assertLessEqual(set(PROGRAMS), {(p["stage"][:2], p["direction"] == "backward") for p in programs})
        for program in programs:
            self.assertTrue(program["ok"])
            self.assertEqual(program["reports"], 0)
            self.assertEqual(program["equal"], program["tiles"] is not None)
            self.assertEqual(program["equal"], program["vgpu_hbm"] == program["cpu_hbm"])
            self.assertLessEqual(program["error"], program["tolerance"])
        text = self.result("tour")
        for program in programs:
            self.assertIn(f"{program['vgpu_hbm']['bytes']:,}", text)


if __name__ == "__main__":
    unittest.main()
