#!/usr/bin/env python3
"""`verify`: the agreement table names each backend, dtype and pass once, and a wrong kernel makes it fail."""
# label: full
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from device import Kernels  # noqa: E402

GRID = 2 * 2 * 2 * 2  # dtype, d, N, mask


class Verify(Kernels):
    def test_on_the_cpu(self):
        document = self.json("verify", "--on", "cpu")
        self.validate("verify", document)
        self.assertEqual((document["backends"], document["missing"]), (["cpu"], []))
        rows = {(r["direction"], r["dtype"], r["d"], r["n"], r["causal"]): r["on"]["cpu"] for r in document["rows"]}
        self.assertEqual((len(rows), document["comparisons"], document["breaches"]), (2 * GRID, 2 * GRID, 0))
        for (direction, *_), compared in rows.items():
            self.assertTrue(compared["pass"])
            wanted = {"o", "lse"} if direction == "forward" else {"dq", "dk", "dv"}
            self.assertEqual(set(compared["outputs"]), wanted)
            for output in compared["outputs"].values():
                self.assertLess(output["error"], output["tolerance"])
        errors = [compared["outputs"]["o"]["error"] for key, compared in rows.items() if key[0] == "forward"]
        self.assertGreater(len(set(errors)), GRID // 2)  # problems of their own

    def test_on_the_virtual_gpu(self):
        document = self.json("verify", "--stage", "03", "--on", "vgpu")
        self.validate("verify", document)
        self.assertEqual({row["n"] for row in document["rows"]}, {512})
        self.assertEqual({row["direction"] for row in document["rows"]}, {"forward"})
        reasons = [missing["why"] for missing in document["missing"]]
        self.assertTrue(all("bf16" in why or "only a forward pass" in why for why in reasons), reasons)
        text = self.result("verify", "--stage", "03", "--on", "vgpu")
        for words in ("03_online_softmax", "up to N = 512", "max |Δ|", "0 beyond what is allowed"):
            self.assertIn(words, text)

    def test_a_wrong_kernel_fails(self):
        folder = self.kernels()
        self.compile("wrong.cu", folder / "vgpu/04_recomputed_backward_forward.so")
        done = self.start("verify", "--stage", "04", "--on", "vgpu", "--json")
        self.assertEqual(done.returncode, 1)
        document = json.loads(done.stdout)
        self.validate("verify", document)
        self.assertEqual(document["breaches"], document["comparisons"])
        self.assertFalse(any(row["on"]["vgpu"]["pass"] for row in document["rows"]))
        self.assertRegex(done.stderr, r"\Aflashsteps: (\d+) of \1 comparisons are beyond what is allowed\n\Z")

    def test_a_race_fails(self):
        folder = self.kernels()
        self.compile("wrong.cu", folder / "vgpu/04_recomputed_backward_forward.so", "-DRACE")
        done = self.start("verify", "--stage", "04", "--on", "vgpu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("[race]", done.stdout)

    def test_what_is_not_here(self):
        self.kernels()
        self.refused(["verify", "--on", "gpu"], "no GPU kernels", "cuda preset")
        self.refused(["verify", "--on", "vgpu", "--stage", "04"], "04_recomputed_backward")
        self.refused(["verify", "--on", "tpu"], "tpu", "cpu, vgpu or gpu")
        self.refused(["verify", "--stage", "09"], "09")
        self.environment["FLASH_KERNELS"] = "/nowhere"
        document = self.json("verify", "--stage", "01")
        self.validate("verify", document)
        self.assertEqual([missing["backend"] for missing in document["missing"]], ["vgpu", "gpu"])
        self.assertEqual(document["backends"], ["cpu"])


if __name__ == "__main__":
    unittest.main()
