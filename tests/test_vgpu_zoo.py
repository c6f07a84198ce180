#!/usr/bin/env python3
# label: full
"""Seeded kernel bugs: the virtual GPU must report each with the words that its patch names.

    test_vgpu_zoo.py [NAME ...]      all of zoo/bugs/*.patch, or those named; prints a table

A patch's head, above its diff:
    what the mistake is, in words
    Kernel: specimens/pipeline            what it is planted in: a file of zoo/, or a kernel of cuda/ ("03_online_softmax/forward")
    Run: --n 65 --causal                  for a kernel of cuda/: options of `flashsteps run STAGE --on vgpu --check`
    Stage: 05_fa2_partitioning            optional: the STAGE that is run, where it is not the kernel's own step
    Report: race                          words that the report must hold, one line for each
    Missed: why                           instead: nothing can be seen; the test fails once something is
Every specimen and kernel must be silent without a mistake, with early, late and random completion. What --deterministic
promises, the same bits in any order of warps, is looked at, too, and so are bank conflicts.
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "tests/zoo"
BUILD = Path(os.environ.get("FLASH_BUILD_DIR", ROOT / "build/cpu")).resolve()
APP = Path(os.environ.get("FLASH_APP", BUILD / "flashsteps-app"))
WORK = BUILD / "zoo"
MODES = ("late", "early", "random")
SECONDS = 120
SEEDS = range(1, 5)
CAUGHT_SHARE = 0.95


def sh(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)


def compile_kernel(tree, source, out):
    environment = {**os.environ, "FLASH_GPU_LIBRARY": str(BUILD / "libflash_gpu.so")}
    out.parent.mkdir(parents=True, exist_ok=True)
    done = sh([tree / "cuda/compile_kernel.sh", "vgpu", tree / source, out, "-w"], env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{source} does not compile:\n{done.stdout[-3000:]}")


def conflicts(text):
    """What a run says of bank conflicts, in the words of run_specimen."""
    return "".join(f"[bank conflicts] {taken} wavefronts instead of {least}\n"
                   for taken, least in re.findall(r"([\d,]+) wavefronts, ([\d,]+) without bank conflicts", text)
                   if taken != least)


class Kernel:
    """A specimen or a kernel of cuda/, compiled from some tree."""

    def __init__(self, name, options, stage=None):
        self.name, self.options = name, options
        self.stage = stage or re.sub("(/forward|/backward|_backward)$", "", name)
        self.specimen = name.startswith("specimens/")
        self.source = f"tests/zoo/{name}.cu" if self.specimen else f"cuda/{name}.cu"

    def run(self, tree, folder):
        """Exit status and output in each completion mode."""
        file = folder / "kernels/vgpu" / f"{self.name.replace('/', '_')}.so"
        compile_kernel(tree, self.source, file)
        if self.specimen:
            command = lambda mode: [BUILD / "tests/run_specimen", file, mode, "1"]
        else:
            for other in (BUILD / "kernels/vgpu").glob("*.so"):
                if not (file.parent / other.name).exists():
                    (file.parent / other.name).symlink_to(other)
            command = lambda mode: [*self.command(), "--check", "--completion", mode]
        environment = {**os.environ, "FLASH_KERNELS": str(folder / "kernels")}
        runs = {}
        for mode in MODES:
            done = subprocess.run(command(mode), env=environment, timeout=SECONDS, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            # The program puts its results on standard output, and what is wrong with them on standard error.
            text = done.stdout + done.stderr if self.specimen else done.stderr + conflicts(done.stdout)
            runs[mode] = (done.returncode, text)
        if "--deterministic" in self.options and all(code == 0 for code, _ in runs.values()):
            runs["seeds"] = self.compare_seeds(folder, environment)
        return runs

    def command(self):
        return [APP, "run", self.stage, "--on", "vgpu", *self.options]

    def compare_seeds(self, folder, environment):
        """Are all outputs the same bits, in whatever order warps run?"""
        outputs = {}
        for seed in SEEDS:
            out = folder / f"seed{seed}"
            sh([*self.command(), "--completion", "random", "--vgpu-seed", str(seed), "--out", out], env=environment,
               timeout=SECONDS, check=True)
            for file in out.glob("*.npy"):
                outputs.setdefault(file.stem, set()).add(file.read_bytes())
        text = [f"[bits] {name} has {len(bits)} results in {len(SEEDS)} orders of warps\n"
                for name, bits in sorted(outputs.items()) if len(bits) > 1]
        return int(bool(text)), "".join(text)


class Bug:
    def __init__(self, patch):
        self.patch, self.name = patch, patch.stem
        head = patch.read_text().split("--- a/")[0]
        field = lambda key: re.findall(rf"^{key}: (.+)$", head, re.M)
        self.what = head.splitlines()[0]
        self.words, self.missed = field("Report"), field("Missed")
        self.kernel = Kernel(field("Kernel")[0], shlex.split((field("Run") or [""])[0]), *field("Stage"))

    def run(self):
        """Whether it was caught, and the first line of the report."""
        folder = WORK / self.name
        tree = folder / "tree"
        shutil.rmtree(folder, ignore_errors=True)
        (tree / "tests").mkdir(parents=True)
        shutil.copytree(ROOT / "cuda", tree / "cuda")
        shutil.copytree(ZOO, tree / "tests/zoo", ignore=shutil.ignore_patterns("*.patch"))
        for name in ("sim", "stages"):
            (tree / name).symlink_to(ROOT / name)
        done = sh(["patch", "-p1", "--fuzz=0", "-i", self.patch], cwd=tree)
        if done.returncode != 0:
            raise RuntimeError(f"the patch no longer applies:\n{done.stdout}")
        runs = self.kernel.run(tree, folder)
        output = "\n".join(text for _, text in runs.values())
        noticed = any(code != 0 for code, _ in runs.values()) or "bank conflicts" in self.words
        missing = [words for words in self.words if words not in output]
        shutil.rmtree(folder)
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        first = next((line for line in lines if self.words and self.words[0] in line), (lines + ["nothing reported"])[0])
        return noticed and not missing, first, missing, output


def run_bug(bug):
    try:
        caught, first, missing, output = bug.run()
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        return bug, False, f"FAILS: {problem}", str(problem)
    if bug.missed:
        noticed = first != "nothing reported"
        return bug, None, f"missed: {bug.missed[0]}" if not noticed else f"FAILS: no longer missed: {first}", output
    return bug, caught, first if caught else f"FAILS: not in the report: {missing}\n{output[:1500]}", output


def run_clean(kernel):
    folder = WORK / re.sub(r"\W+", "_", " ".join(["clean", kernel.name, *kernel.options]))
    shutil.rmtree(folder, ignore_errors=True)
    runs = kernel.run(ROOT, folder)
    shutil.rmtree(folder)
    return [f"{kernel.name}, {mode}, without a mistake:\n{text}" for mode, (code, text) in runs.items()
            if code != 0 or "bank conflicts" in text]


def main(names):
    patches = sorted(ZOO.glob("bugs/*.patch"))
    unknown = set(names) - {p.stem for p in patches}
    if unknown:
        sys.exit(f"no such bug: {', '.join(sorted(unknown))}")
    bugs = [Bug(p) for p in patches if not names or p.stem in names]
    failures = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = {(b.kernel.name, b.kernel.stage, *b.kernel.options): b.kernel for b in bugs}
        for lines in pool.map(run_clean, clean.values()):
            failures += lines
        results = list(pool.map(run_bug, bugs))
    caught = 0
    for bug, found, line, _ in results:
        caught += found is True
        print(f"{bug.name:34} {line}", flush=True)
        if "FAILS" in line:
            failures.append(f"{bug.name}: {line}")
    print(f"{caught} of {len(bugs)} caught")
    if caught < CAUGHT_SHARE * len(bugs):
        failures.append(f"only {caught} of {len(bugs)} are caught")
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
