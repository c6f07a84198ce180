"""Tables of what was measured on cards: docs/measured/*.json, as `bench` wrote them."""
import json

from app import ROOT
from markdown import escaped
from tables import number, table

NOTHING = '<p class="made">Nothing of this kind has been measured yet.</p>\n'


def runs():
    """All that was measured, the newest first."""
    found = [run for path in ROOT.glob("docs/measured/*.json") for run in json.loads(path.read_text())["runs"]]
    return sorted(found, key=lambda run: run["date"], reverse=True)


def timed(run):
    """{name: what was timed}, stages by their short names before the peers."""
    rows = {short(row["stage"]) + ", deterministic" * row.get("deterministic", False): row
            for row in run["rows"] if "seconds" in row}
    return rows | {peer["title"]: peer for peer in run.get("peers", []) if "seconds" in peer}


def short(stage):
    """05_fa2_partitioning/a_loop_swap is 05a."""
    folder, _, letter = stage.partition("/")
    return folder[:2] + letter[:1]


def tiles_of(row):
    return f'{row["tiles"]["br"]}\u00a0×\u00a0{row["tiles"]["bc"]}' if row["tiles"] else "none"


def digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def card(run):
    return f'{run["gpu"]["name"]}, driver {run["driver"]}, {run["compiler"]}, {run["date"][:10]}'


def method(run):
    return f'Median of {run["rounds"]} rounds in which each is timed once; L2 {run["l2"]}. {escaped(card(run))}.'


def sentence(words):
    return words[0].upper() + words[1:]


def mask(problem):
    return "causal" if problem["causal"] else "none"


def sizes(problem):
    heads = f'{problem["batch"]} × {problem["heads"]} heads'
    grouped = f' ({problem["kv_heads"]} KV)' if problem["kv_heads"] != problem["heads"] else ""
    direction = "backward" if problem["backward"] else "forward"
    return (f'{direction}, {problem["dtype"]}, {heads}{grouped}, N = {problem["n"]:,}, d = {problem["d"]}' +
            ", causal" * problem["causal"])


# ---- the cells of the papers

def newest_sweep(backward):
    swept = [run for run in runs() if "sweep" in run and run["problem"]["backward"] == backward]
    return [run for run in swept if run["sweep"] == swept[0]["sweep"]][::-1] if swept else []


def speed_cell(run, name, ours):
    row = timed(run).get(name)
    if not row:
        return ("–", "number")
    ratio = f' ({row["seconds"]["median"] / ours["seconds"]["median"]:.2f})' if row is not ours else ""
    return (digits(row["tflops"]) + ratio, "number")


def last_stage(run):
    """The one that everything else is held against."""
    rows = [row for row in run["rows"] if "seconds" in row and not row.get("deterministic")]
    return rows[-1] if rows else None


def sweep(direction):
    cells = sorted(newest_sweep(direction == "backward"),
                   key=lambda run: [run["problem"][key] for key in ("d", "n", "causal")])
    names = list(dict.fromkeys(name for run in cells for name in timed(run)))
    if not names:
        return NOTHING
    rows = []
    for run in filter(last_stage, cells):
        ours, problem = last_stage(run), run["problem"]
        share = f'{100 * ours["gemm_share"]:.0f} %' if "gemm_share" in ours else "–"
        gemm = digits(run["gemm"]["tflops"]) if (run.get("gemm") or {}).get("tflops") else "–"
        rows.append([number(problem["d"]), number(problem["n"]), mask(problem), (gemm, "number"), (share, "number"),
                     *(speed_cell(run, name, ours) for name in names)])
    ours = next(short(last_stage(run)["stage"]) for run in cells if last_stage(run))
    return table(["d", "N", "mask", "GEMM", f"{ours} of GEMM", *map(escaped, names)], rows,
                 f"{sentence(direction)}, {cells[0]['problem']['dtype']}, 16,384 tokens, 2,048 channels, TFLOP/s; in "
                 f"brackets how many times as fast {ours} is. {method(cells[0])}")


# ---- step by step

def ladder_table(run):
    rows, before = [], None
    for name, row in timed(run).items():
        if "stage" not in row or row.get("deterministic"):
            continue
        median = row["seconds"]["median"]
        share = f'{100 * row["gemm_share"]:.1f} %' if "gemm_share" in row else "–"
        rows.append([name, tiles_of(row), (f"{1e3 * median:.4g}", "number"), (digits(row["tflops"]), "number"),
                     (share, "number"), (f"{before / median:.2f}" if before else "–", "number")])
        before = median
    return table(["step", "tiles", "time [ms]", "TFLOP/s", "of GEMM", "× the one above"], rows,
                 f"{sentence(sizes(run['problem']))}. {method(run)}")


def ladder(number=""):
    """The newest run of each problem that several stages were timed on; with a number, several steps of that one."""
    newest = {}
    for run in runs():
        if "rows" in run and "sweep" not in run and "nq" not in run["problem"]:
            if sum("seconds" in row and not row.get("deterministic") for row in run["rows"]) > 1:
                newest.setdefault(json.dumps(run["problem"], sort_keys=True), run)
    lettered = [run for run in newest.values()
                if any("/" in row["stage"] and row["stage"].startswith(number) for row in run["rows"])]
    return "".join(map(ladder_table, lettered or ([] if number else newest.values()))) or NOTHING


# ---- one query, the same bits, traffic

def decode():
    rows = []
    newest = [run for run in runs() if "rows" in run and "nq" in run["problem"]]
    newest = [run for run in newest if run["date"][:10] == newest[0]["date"][:10]]
    for run in newest[::-1]:
        problem, copied = run["problem"], (run["copy"] or {}).get("bytes_per_second")
        for name, row in timed(run).items():
            share = f'{100 * row["copy_share"]:.0f} %' if "copy_share" in row else "–"
            rows.append([escaped(name), sizes(problem), number(problem["splits"]) if "stage" in row else "–",
                         (f'{1e6 * row["seconds"]["median"]:.4g}', "number"),
                         (digits(row["bytes_per_second"] / 1e9), "number"),
                         (digits(copied / 1e9) if copied else "–", "number"), (share, "number")])
    if not rows:
        return NOTHING
    return table(["kernels", "problem, one query", "splits", "time [µs]", "GB/s", "a copy [GB/s]", "of the copy"], rows,
                 "Bytes are Q, K, V read and O, LSE written, each once; a copy's are read and written. " +
                 method(newest[0]))


def determinism():
    rows, cards = [], []
    for run in runs():
        if "rows" not in run:
            continue
        names = timed(run)
        for name, row in names.items():
            plain = names.get(name.removesuffix(", deterministic"))
            if not row.get("deterministic") or not plain:
                continue
            slower = row["seconds"]["median"] / plain["seconds"]["median"]
            same = f'{row["same_bits"]} runs, all bits the same' if row["same_bits"] else "two runs differ"
            rows.append([name, sizes(run["problem"]), same, (f"{slower:.3f}", "number")])
            cards.append(card(run))
    if not rows:
        return NOTHING
    return table(["kernels", "problem", "dQ, dK, dV", "× the time without"], rows, escaped(cards[0]) + ".")


def traffic():
    newest = next((run for run in runs() if "traffic" in run), None)
    if not newest:
        return NOTHING
    rows = []
    for row in newest["traffic"]:
        counted = [row["ledger"]["read_bytes"], row["sm_fill_bytes"]]
        others = [row["l2_read_bytes"], row["dram_read_bytes"], row["dram_written_bytes"]]
        rows.append([short(row["stage"]), sizes(row["problem"]), tiles_of(row), *(number(round(n)) for n in counted),
                     (f'{100 * row["off"]:+.2f} %'.replace("-", "−"), "number"), *(number(round(n)) for n in others)])
    return table(["step", "problem", "tiles", "ledger reads [bytes]", "SM fill [bytes]", "off", "L2 reads [bytes]",
                  "DRAM reads [bytes]", "DRAM writes [bytes]"], rows,
                 "One launch behind a cleared L2, by Nsight Compute's counters; the ledger is the CPU program's with "
                 f"the kernel's tiles. {escaped(card(newest))}.")


TABLES = {"sweep": sweep, "ladder": ladder, "decode": decode, "determinism": determinism, "traffic": traffic}
