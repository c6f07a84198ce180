"""The program that counts, asked from Python: what the site shows is what it answers."""
import functools
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Refused(Exception):
    """One sentence: what was asked, why not, what would do."""


class Stage:
    """A folder of stages/ with a stage.json. Its programs are named as their files: forward and backward, or with letters
    a_loop_swap and a_loop_swap_backward."""

    def __init__(self, manifest):
        self.id = manifest.parent.name
        self.number = self.id[:2]
        self.facts = json.loads(manifest.read_text())
        self.title = f"{self.number} {self.facts['title']}"

    def programs(self):
        return list(self._programs())

    def _programs(self):
        """{program: what stage.json says of it}; of one that is a kernel's alone what it says of that."""
        found = {}
        for step, facts in self.facts.get("steps", {"": self.facts}).items():
            for direction in ("forward", "backward"):
                said = facts.get(direction) or facts.get("cuda", {}).get(direction)
                if said:
                    found[direction if not step else step + "_backward" * (direction == "backward")] = said
        return found

    def extends(self, program):
        """(stage, program) that it is a changed copy of, or None."""
        before = self._programs()[program].get("extends")
        if not before:
            return None
        folder, name = before.split("/")
        return next(stage for stage in STAGES if stage.id == folder), name

    @staticmethod
    def direction(program):
        return "backward" if program.endswith("backward") else "forward"

    def has_backward(self):
        return any(self.direction(program) == "backward" for program in self.programs())

    def short(self, program):
        """What the command line calls it: 03, 05a."""
        return self.number + (program[0] if "steps" in self.facts else "")

    def named(self, program):
        return f"{self.short(program)} {self.direction(program)}" if "steps" in self.facts else program

    def titled(self, program):
        """"05a Loop swap"; of a stage without letters its title."""
        steps = self.facts.get("steps", {})
        step = steps.get(program.removesuffix("_backward"))
        return f"{self.short(program)} {step['title']}" if step else self.title

    def cpu(self, program):
        """Its file, or None where there are only kernels."""
        path = f"stages/{self.id}/{program}.hpp"
        return path if (ROOT / path).exists() else None

    def kernel(self, program):
        """Its kernel's file, or None."""
        path = f"cuda/{self.id}/{program}.cu"
        return path if (ROOT / path).exists() else None


STAGES = [Stage(path) for path in sorted(ROOT.glob("stages/*/stage.json"))]


class App:
    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())

    @functools.lru_cache(maxsize=None)
    def text(self, *words, folder=ROOT):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise Refused(f"the site needs what `flashsteps {' '.join(words)}` prints, but it said "
                          f"\"{done.stderr.strip()}\"; mend that, then try again")
        return done.stdout

    def json(self, *words):
        return json.loads(self.text(*words, "--json"))

    def knows(self, command):
        """Is it a command that does something, not one that waits for a later stage of the work?"""
        return subprocess.run([self.program, command, "--help"], capture_output=True).returncode == 0 and \
            f"\n  {command} " in self.text("--help").split("Commands that wait")[0]
