#!/usr/bin/env python3
"""The paper map is whole: each line of the papers' algorithms that stands for code is named in a stage's comments and
in a kernel's; and the comments name no line that the algorithm does not have."""
# label: quick
import pathlib
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/site"))
from app import STAGES  # noqa: E402
from tables import algorithms, lines_of, paper_map, paper_of  # noqa: E402


def gaps():
    for algorithm in algorithms():
        for line, _, has_code, places in paper_map(algorithm):
            sides = {path.split("/")[0] for path in places}
            if has_code is True and not {"stages", "cuda"} <= sides:
                yield f"{algorithm['name']}, line {line}: named in {sorted(sides)} alone"
            if has_code == "stages" and "stages" not in sides:
                yield f"{algorithm['name']}, line {line}: named nowhere"


def strangers():
    for stage in STAGES:
        known = {(a["number"], line) for a in algorithms() if a["paper"] == paper_of(stage) for line in a["lines"]}
        for program in stage.programs():
            for path in filter(None, (stage.cpu(program), stage.kernel(program))):
                for (algorithm, line), places in lines_of(path).items():
                    if (algorithm, line) not in known:
                        yield f"{path}:{places[0]}: Algorithm {algorithm} has no line {line}"


def main():
    wrong = [*gaps(), *strangers()]
    print("\n".join(wrong) or f"{len(algorithms())} algorithms")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
