"""Kernels of a test's own, and a pretended GPU: host_kernels/pretended_cuda.cpp."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from command_line import APP, ROOT, CommandLine

BUILD = pathlib.Path(os.environ.get("FLASH_BUILD_DIR", ROOT / "build/cpu"))
HERE = ROOT / "tests/host_kernels"


class Kernels(CommandLine):
    def start(self, *args):
        words = [str(a) for a in args]
        return subprocess.run([APP, *words], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              env={**os.environ, **self.environment})

    def setUp(self):
        super().setUp()
        self.environment = {}

    def kernels(self, *, copied=()):
        """A folder of kernels of this test's own, and in it copies of the build's (backend, file)."""
        folder = self.folder.parent / (self.folder.name + "-kernels")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for side in ("vgpu", "gpu"):
            (folder / side).mkdir(parents=True, exist_ok=True)
        for side, name in copied:
            shutil.copy(BUILD / "kernels/vgpu" / name, folder / side / name)
        self.environment["FLASH_KERNELS"] = str(folder)
        return folder

    def compile(self, source, out, *flags):
        subprocess.run([ROOT / "cuda/compile_kernel.sh", "vgpu", HERE / source, out, *flags], check=True,
                       env={**os.environ, "FLASH_GPU_LIBRARY": str(BUILD / "libflash_gpu.so")})


class PretendedGpu(Kernels):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.device = pathlib.Path(folder.name) / "device.so"
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{ROOT}",
                        HERE / "pretended_cuda.cpp", BUILD / "libflash_gpu.so", f"-Wl,-rpath,{BUILD}",
                        "-o", cls.device], check=True)

    def setUp(self):
        super().setUp()
        names = [path.name for path in (BUILD / "kernels/vgpu").glob("*.so")]
        folder = self.kernels(copied=[(side, name) for side in ("gpu", "vgpu") for name in names])
        shutil.copy(self.device, folder / "gpu")
