#!/usr/bin/env python3
"""Runs the notebooks of this folder from top to bottom, each in a fresh kernel.

    run.py [--update] [NOTEBOOK …]     all where none is named; --update keeps their outputs in the files

One line for each on standard output; exit status 1 where a cell failed.
"""
import copy
import re
import sys
import time
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

FOLDER = Path(__file__).resolve().parent
SECONDS_A_CELL = 120


def notebooks(folder=FOLDER):
    return sorted(folder.glob("*.ipynb"))


def client_of(notebook, folder=FOLDER):
    """A client whose kernel works in this folder, where the notebooks' files are named from."""
    place = {"metadata": {"path": str(folder)}}
    return NotebookClient(
        notebook, timeout=SECONDS_A_CELL, kernel_name="cling", resources=place, record_timing=False
    )


def run(notebook, again=False):
    """Fills in the cells' outputs. `again`: then runs all cells once more in the same kernel, which have to say the
    same; the outputs of the first time are kept. What failed, in words; empty: nothing."""
    client, cells = client_of(notebook), notebook.cells
    index, when = 0, ""
    try:
        with client.setup_kernel():
            for index, cell in enumerate(cells):
                client.execute_cell(cell, index)
                if cell.cell_type == "code":
                    cell.outputs = tidy(cell.outputs)
            notebook.cells, when = copy.deepcopy(cells), ", the second time"
            for index, cell in enumerate(notebook.cells if again else []):
                client.execute_cell(cell, index)
                if cell.cell_type == "code":
                    cell.outputs = tidy(cell.outputs)
                if (now := said(cell)) != (before := said(cells[index])):
                    return f"cell {index + 1}{when}, says something else: {first_difference(before, now)}"
    except CellExecutionError as error:
        return f"cell {index + 1}{when}: {error.ename}: {' '.join(error.evalue.split())[:300]}"
    except (CellTimeoutError, DeadKernelError) as error:
        return f"cell {index + 1}{when}: {type(error).__name__}: {error}"
    finally:
        notebook.cells = cells
    return ""


def tidy(outputs):
    """Pieces of one stream as one, however they arrived; colours of error messages left out."""
    joined = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before and output.output_type == before.output_type == "stream" and output.name == before.name:
            before.text += output.text
        else:
            joined.append(output)
        if output.output_type == "error":
            output.traceback = [re.sub(r"\x1b\[\d*m", "", line) for line in output.traceback]
    return joined


def text_of(cell):
    """A cell's outputs as one text."""
    parts = []
    for output in cell.get("outputs", []):
        parts.append(output.output_type)
        parts += [output.get("text", ""), output.get("ename", ""), output.get("evalue", "")]
        parts += [f"{mime}\n{data}" for mime, data in sorted(output.get("data", {}).items())]
    return "\n".join(parts)


def said(cell):
    """The same without the numbers that Cling gives to cells: it counts on when one runs again."""
    return re.sub(r"\bcell\[\d+\]", "cell", text_of(cell))


def first_difference(before, now):
    lines = zip_longest(before.splitlines(), now.splitlines(), fillvalue="")
    return next(f"'{b[:150]}', then '{n[:150]}'" for b, n in lines if b != n)


def main(arguments):
    update = "--update" in arguments
    named = [Path(a) for a in arguments if a != "--update"]
    failed = False
    for path in named or notebooks():
        notebook = nbformat.read(path, as_version=4)
        start = time.monotonic()
        wrong = run(notebook)
        failed = failed or bool(wrong)
        seconds = time.monotonic() - start
        print(f"{path.stem:28} {len(notebook.cells):3} cells {seconds:5.1f} s  {wrong or 'ok'}", flush=True)
        if update and not wrong:
            nbformat.write(notebook, path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
