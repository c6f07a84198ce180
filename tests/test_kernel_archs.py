#!/usr/bin/env python3
"""Which GPUs kernels are built for. nvcc is a script that keeps what it was asked for."""
# label: full
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
NVCC = '''#!/bin/bash
[[ $1 == --list-gpu-arch ]] && { printf 'compute_80\\ncompute_90\\n'; exit; }
printf '%s\\n' "$@" >"$ASKED"
'''


class Archs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nvcc, self.asked = self.folder / "nvcc", self.folder / "asked"
        self.nvcc.write_text(NVCC)
        self.nvcc.chmod(0o755)
        self.environment = {**os.environ, "NVCC": str(self.nvcc), "ASKED": str(self.asked)}

    def codes(self, kernel, archs):
        """What nvcc is asked to make of a kernel: machine code (sm_…) and PTX (compute_…); and what the kernel then
        says that it was built for."""
        subprocess.run([ROOT / "cuda/compile_kernel.sh", "gpu", ROOT / f"cuda/{kernel}.cu", self.folder / "kernel.so"],
                       env={**self.environment, "FLASH_CUDA_ARCHS": archs}, check=True)
        asked = self.asked.read_text()
        return re.findall(r"code=(\w+)", asked), re.search(r'FLASH_BUILT_FOR="(.*)"', asked)[1]

    def test_a_kernel_is_built_for_what_it_can_run_on(self):
        turing, ampere = "05_fa2_partitioning/a_loop_swap", "05_fa2_partitioning/b_split_q_warps"
        self.assertEqual(self.codes(turing, "75 80 90"),
                         (["compute_75", "sm_75", "sm_80", "sm_90"], "sm_75 80 90 and PTX of compute_75"))
        self.assertEqual(self.codes(ampere, "75 80 90")[0], ["compute_80", "sm_80", "sm_90"])
        self.assertEqual(self.codes(ampere, "75 90a")[0], ["compute_90a", "sm_90a"])
        self.assertEqual(self.codes(ampere, "75")[0], ["compute_80", "sm_80"])  # at least something that compiles

    def test_a_gpu_that_the_toolkit_does_not_know(self):
        for archs, words in (("80;120", "sm_120"), ("75", "sm_75"), ("90a;100a", "sm_100a")):
            asked = ["cmake", "-S", ROOT, "-B", self.folder / "build", "-DFLASH_CUDA=ON", f"-DNVCC={self.nvcc}",
                     f"-DCMAKE_CUDA_ARCHITECTURES={archs}"]
            done = subprocess.run(asked, env=self.environment, capture_output=True, text=True)
            said = " ".join(done.stderr[-1000:].split())
            self.assertEqual(done.returncode, 1)
            self.assertRegex(said, f"kernels for {words} were asked for, but .* knows compute_80 compute_90; leave it")


if __name__ == "__main__":
    unittest.main()
