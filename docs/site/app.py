"""The program that counts, asked from Python: what the site shows is what it answers."""
import functools
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Refused(Exception):
    """One sentence: what was asked, why not, what would do."""


class Stage:
    """A folder of stages/ with a stage.json."""

    def __init__(self, manifest):
        self.id = manifest.parent.name
        self.number = self.id[:2]
        self.facts = json.loads(manifest.read_text())
        self.title = f"{self.number} {self.facts['title']}"

    def programs(self):
        return [name for name in ("forward", "backward") if name in self.facts]

    def cpu(self, program):
        return f"stages/{self.id}/{program}.hpp"

    def kernel(self, program):
        """Its kernel's file, or None."""
        path = f"cuda/{self.id}/{program}.cu"
        return path if (ROOT / path).exists() else None


STAGES = [Stage(path) for path in sorted(ROOT.glob("stages/*/stage.json"))]


class App:
    def __init__(self, program):
        self.program = str(program)

    @functools.lru_cache(maxsize=None)
    def text(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, cwd=ROOT)
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
