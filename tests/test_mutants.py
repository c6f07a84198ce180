#!/usr/bin/env python3
# label: deep
"""Seeded mistakes: each mutants/*.patch must apply, build, and make the tests that its head names fail.

    test_mutants.py [--sample N] [NAME ...]     all mutants, N of them by the day of the year, or those named

A patch's head, above its diff:
    what the mistake is, in words
    Caught by: test_faults "F10*"        a test program, and which of its cases; each one named must fail
    Stages: 03_online_softmax            optional: only these are linked, and recompiled; "none" for a test that needs none
The mutant is built as the tree itself was, from the build folder's own commands: what does not depend on a patched
file is linked as it is. The same link without the mistake must pass, so that a failure is the mistake's.
"""
import argparse
import concurrent.futures
import datetime
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("FLASH_BUILD_DIR", ROOT / "build/cpu")).resolve()
WORK = BUILD / "mutants"
TEST_SECONDS = 120


class Bad(Exception):
    """A mutant that is not what its head says."""


def sh(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)


# ---- what the build folder knows


@functools.cache
def compile_commands():
    """Object (relative to the build folder) → its compiler command."""
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])
        commands[arguments[arguments.index("-o") + 1]] = arguments
    return commands


@functools.cache
def dependencies():
    """Object → the project's files it was compiled from, relative to the root."""
    result, files = {}, None
    for line in sh(["ninja", "-C", BUILD, "-t", "deps"]).stdout.splitlines():
        if line and not line.startswith(" ") and ": #deps" in line:
            files = result.setdefault(line.split(":")[0], set())
        elif line.startswith(" "):
            path = Path(os.path.normpath(BUILD / line.strip()))
            if path.is_relative_to(ROOT):
                files.add(str(path.relative_to(ROOT)))
    return result


@functools.cache
def link_command(program):
    """The linker's command: the last that ninja would run for a test program."""
    line = sh(["ninja", "-C", BUILD, "-t", "commands", "-s", f"tests/{program}"]).stdout.strip().splitlines()[-1]
    line = line.removeprefix(": && ").removesuffix(" && :")
    return shlex.split(line)


def wanted(program, stages):
    """The objects that a test program is made of; its archives' members among them where it may need them."""
    uses = dependencies().get(f"tests/CMakeFiles/{program}.dir/{program}.cpp.o", ())
    folders = ["CMakeFiles/flash_memory.dir/", "CMakeFiles/flash_theory.dir/", "CMakeFiles/flash_stages.dir/",
               f"tests/CMakeFiles/{program}.dir/"]
    folders += ["CMakeFiles/flash_app.dir/"] if any(path.startswith("app/") for path in uses) else []
    folders += ["CMakeFiles/flash_trace.dir/"] if any(path.startswith("sim/trace/") for path in uses) else []
    folders += ["CMakeFiles/flash_host.dir/"] if any(path.startswith("cuda/common/") for path in uses) else []
    return [o for o in compile_commands() if any(o.startswith(f) for f in folders) and not left_out(o, stages)]


def left_out(path, stages):
    if stages == ["none"]:  # nor what stands on them: a linker may take strings from there that it finds nowhere before
        return "flash_stages.dir/" in path or path.endswith("libflash_host.a")
    stage = re.search(r"flash_stages\.dir/stages/(\d\d_\w+)\.cpp\.o$", path)
    return bool(stages and stage and stage[1] not in stages)


# ---- one mutant


class Mutant:
    def __init__(self, patch):
        self.patch, self.name = patch, patch.stem
        text = patch.read_text()
        head = text[: text.index("--- a/")]
        self.tests = [tuple(shlex.split(line)) for line in re.findall(r"^Caught by: (.+)$", head, re.M)]
        self.stages = [s for line in re.findall(r"^Stages: (.+)$", head, re.M) for s in line.split()]
        self.patched = re.findall(r"^\+\+\+ b/(\S+)", text, re.M)
        self.folder = WORK / self.name
        self.tree = self.folder / "tree"

    def run(self):
        start = time.time()
        if not self.tests:
            raise Bad("names no test that catches it")
        self.copy_and_patch()
        for program, cases in self.tests:
            clean = self.run_test(program, cases, self.link(program, {}))
            if "No test" in clean.stdout:
                raise Bad(f"{program} has no case {cases}")
            if clean.returncode != 0:
                raise Bad(f"{program} {cases} fails without the mistake too:\n{clean.stdout[-2000:]}")
            objects = {o: self.compile(o) for o in wanted(program, self.stages) if dependencies()[o] & set(self.patched)}
            if not objects:
                raise Bad(f"nothing that {program} is made of depends on {', '.join(self.patched)}")
            if self.run_test(program, cases, self.link(program, objects)).returncode == 0:
                raise Bad(f"{program} {cases} does not see the mistake")
        shutil.rmtree(self.folder)
        return f"{self.name}: caught by {', '.join(' '.join(t) for t in self.tests)} ({time.time() - start:.0f} s)"

    def copy_and_patch(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("app", "cuda", "sim", "stages", "tests"):
            shutil.copytree(ROOT / part, self.tree / part, ignore=shutil.ignore_patterns("mutants", "__pycache__"))
        done = sh(["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", self.patch], cwd=self.tree)
        if done.returncode != 0:
            raise Bad(f"does not apply any more:\n{done.stdout}")

    def moved(self, argument):
        """The argument with the tree's copy in place of the tree; the build folder stays."""
        return argument if str(BUILD) in argument else argument.replace(str(ROOT), str(self.tree))

    def compile(self, obj):
        target = self.folder / obj
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            command = [self.moved(a) for a in compile_commands()[obj]]
            command[command.index("-o") + 1] = str(target)
            source = command.index("-c") + 1
            if "/Unity/" in command[source]:  # it names the files that it is made of
                text = Path(command[source]).read_text().replace(str(ROOT), str(self.tree))
                command[source] = str(target) + ".cpp"
                Path(command[source]).write_text(text)
            for flag in ("-MF", "-MT"):
                if flag in command:
                    command[command.index(flag) + 1] = str(target) + ".d"
            done = sh(command, cwd=BUILD)
            if done.returncode != 0:
                raise Bad(f"does not compile:\n{done.stdout[-3000:]}")
        return str(target)

    def link(self, program, objects):
        """`objects` take the place of the build's; those of an archive come before it."""
        target = self.folder / (program + (".mutant" if objects else ".clean"))
        command = [objects.get(a, a) for a in link_command(program) if not left_out(a, self.stages)]
        command[command.index("-o") + 1] = str(target)
        first = next(i for i, a in enumerate(command) if a.endswith(".o"))
        command[first:first] = [o for o in objects.values() if o not in command]
        done = sh(command, cwd=BUILD)
        if done.returncode != 0:
            raise Bad(f"does not link:\n{done.stdout[-3000:]}")
        return target

    def run_test(self, program, cases, binary):
        try:
            libraries = {**os.environ, "LD_LIBRARY_PATH": str(BUILD)}  # it lies in another folder than the build's
            return sh([binary, cases, "--warn", "NoAssertions"], cwd=self.folder, timeout=TEST_SECONDS, env=libraries)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(binary, 124, f"ran longer than {TEST_SECONDS} s")


def attempt(mutant):
    try:
        return True, mutant.run()
    except Bad as bad:
        return False, f"{mutant.name}: {bad}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    mutants = [Mutant(patch) for patch in sorted((ROOT / "tests/mutants").glob("*.patch"))]
    if len(mutants) < 25:
        sys.exit(f"{len(mutants)} mutants where 25 were promised")
    if given.names:
        mutants = [m for m in mutants if m.name in given.names]
    if given.sample:
        first = datetime.date.today().toordinal() * given.sample
        mutants = [mutants[(first + n) % len(mutants)] for n in range(given.sample)]

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for caught, said in pool.map(attempt, mutants):
            failed += not caught
            print(said, flush=True)
    print(f"{len(mutants) - failed} of {len(mutants)} mutants caught")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
