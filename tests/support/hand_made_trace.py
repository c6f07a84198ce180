"""Traces made by hand, for what no run of the command line gives: the steps of stage 03 written out in Python."""
import math
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOWEST = -3.4028234663852886e38
SOURCE = "stages/03_online_softmax/forward.hpp"


def fp32(x):
    if math.isnan(x) or math.isinf(x):
        return x
    return struct.unpack("f", struct.pack("f", x))[0]


def json_number(x):
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return x


class Recorder:
    """Writes steps as the recorder of the command line does."""

    def __init__(self, lines):
        self.lines, self.steps, self.pending = lines, [], {"takes": [], "releases": []}
        self.tiles, self.next_tile, self.held = {}, 0, 0

    def line(self, text):
        return next(k + 1 for k, line in enumerate(self.lines) if text in line)

    def take(self, name, rows, cols):
        tile = self.next_tile
        self.next_tile += 1
        self.tiles[tile] = 4 * (rows[1] - rows[0]) * (cols[1] - cols[0])
        self.pending["takes"].append({"tile": tile, "name": name, "rows": rows, "cols": cols, "dtype": "fp32",
                                      "bytes": self.tiles[tile]})
        self.held += self.tiles[tile]
        return tile

    def release(self, *tiles):
        for tile in tiles:
            self.pending["releases"].append(tile)
            self.held -= self.tiles.pop(tile)

    def step(self, do, text, banner, tile, name, rows, cols, tensor=None, values=None, flops=None):
        size = (rows[1] - rows[0]) * (cols[1] - cols[0])
        step = {"do": do, "at": [0, self.line(text)], "banner": banner, "tile": tile, "name": name, "rows": rows,
                "cols": cols, "held": self.held}
        step.update({key: value for key, value in self.pending.items() if value})
        self.pending = {"takes": [], "releases": []}
        if tensor is not None:
            step.update(tensor=tensor, first=rows[0] * cols[1], hbm=[size, 0, 0] if do == "load" else [0, size, 0], hbm_bytes=4 * size)
        if values is not None:
            step["values"] = [json_number(fp32(x)) for row in values for x in row]
        if flops:
            step["flops"] = flops
        self.steps.append(step)


def online_softmax(n=8, d=2, br=2, bc=2, causal=True, q=None, k=None, v=None, hidden_rows=()):
    """FlashAttention's Algorithm 1 on small numbers. hidden_rows see no key: an explicit mask hides all of theirs."""
    draw = lambda seed: [[fp32(math.sin(seed + 3 * i + 7 * c) * 1.5) for c in range(d)] for i in range(n)]
    q, k, v = q or draw(1), k or draw(2), v or draw(3)
    lines = (ROOT / SOURCE).read_text().splitlines()
    r = Recorder(lines)
    names = ["Q", "K", "V", "O", "l", "m"]
    cols_of = {"Q": d, "K": d, "V": d, "O": d, "l": 1, "m": 1}
    hbm = {"Q": q, "K": k, "V": v, "O": [[0.0] * d for _ in range(n)], "l": [[0.0]] * n, "m": [[0.0]] * n}
    sees = lambda i, j: (j <= i or not causal) and i not in hidden_rows

    def load(text, name, rows):
        tile = r.take(name, rows, [0, cols_of[name]])
        r.step("load", text, "load", tile, name, rows, [0, cols_of[name]], tensor=names.index(name))
        return tile, [list(row) for row in hbm[name][rows[0]:rows[1]]]

    def store(text, name, rows, tile, values):
        hbm[name] = hbm[name][:rows[0]] + [[fp32(x) for x in row] for row in values] + hbm[name][rows[1]:]
        r.step("store", text, "store", tile, name, rows, [0, cols_of[name]], tensor=names.index(name))

    for i in range(0, n, br):
        rows = [i, i + br]
        for name, text, start in [("O", "visible.none(rows) ? p.O", 0), ("l", "w.store(p.l, rows, w.con", 0),
                                  ("m", "w.store(p.m, rows, w.con", LOWEST)]:
            tile, values = r.take(name, rows, [0, cols_of[name]]), [[start] * cols_of[name]] * br
            r.step("fill", text, "store", tile, name, rows, [0, cols_of[name]], values=values)
            store(text, name, rows, tile, values)
            r.release(tile)
    for j in range(0, n, bc):
        cols = [j, j + bc]
        kt, kj = load("Kj = w.load", "K", cols)
        vt, vj = load("Vj = w.load", "V", cols)
        for i in range(0, n, br):
            rows = [i, i + br]
            if causal and j > i + br - 1:
                continue
            qt, qi = load("Qi = w.load", "Q", rows)
            ot, o = load("Tile Oi =", "O", rows)
            lt, l = load("Column l =", "l", rows)
            mt, m = load("Column m =", "m", rows)
            st = r.take("S", rows, cols)
            compute = lambda text, banner, tile, name, values, c=cols, flops=None: r.step(
                "compute", text, banner, tile, name, rows, c, values=values, flops=flops)
            s = [[fp32(sum(a * b for a, b in zip(qi[x], kj[y])) * 0.5) for y in range(bc)] for x in range(br)]
            compute("S = mask.scale", "scores", st, "S", s, flops=[2 * br * bc * d, 0, 0])
            if any(not sees(i + x, j + y) for x in range(br) for y in range(bc)):
                s = [[s[x][y] if sees(i + x, j + y) else -math.inf for y in range(bc)] for x in range(br)]
                compute("mask.apply", "mask", st, "S", s)
            one = [0, 1]
            mn = r.take("m_new", rows, one)
            largest = lambda xs: math.nan if any(math.isnan(x) for x in xs) else max(xs)
            m_new = [[largest([*s[x], m[x][0]])] for x in range(br)]
            compute("m_new = S.rowwise", "softmax", mn, "m_new", m_new, one)
            p = [[fp32(math.exp(s[x][y] - m_new[x][0])) for y in range(bc)] for x in range(br)]
            compute("P = (S.colwise()", "softmax", st, "P", p, flops=[0, br * bc, br * bc])
            lo, ln = r.take("l_old", rows, one), r.take("l_new", rows, one)
            l_old = [[fp32(math.exp(m[x][0] - m_new[x][0]) * l[x][0])] for x in range(br)]
            compute("l_old = (m", "softmax", lo, "l_old", l_old, one)
            l_new = [[fp32(l_old[x][0] + sum(p[x]))] for x in range(br)]
            compute("l_new = l_old", "softmax", ln, "l_new", l_new, one)
            oc = [0, d]
            o = [[fp32(l_old[x][0] * o[x][c]) for c in range(d)] for x in range(br)]
            compute("Oi = l_old", "accumulate", ot, "O", o, oc)
            o = [[fp32(o[x][c] + sum(p[x][y] * vj[y][c] for y in range(bc))) for c in range(d)] for x in range(br)]
            compute("Oi += P", "accumulate", ot, "O", o, oc, flops=[2 * br * bc * d, 0, 0])
            o = [[fp32(o[x][c] / max(l_new[x][0], 1)) for c in range(d)] for x in range(br)]
            compute("Oi = inverse", "accumulate", ot, "O", o, oc)
            store("visible.last(rows, cols)", "O", rows, ot, o)
            store("w.store(p.l, rows, l_new", "l", rows, ln, l_new)
            store("w.store(p.m, rows, m_new", "m", rows, mn, m_new)
            r.release(lo, ln, mn, st, mt, lt, ot, qt)
        r.release(kt, vt)
    return {
        "stage": "03_online_softmax", "on": "cpu", "dtype": "fp32", "command": f"flashsteps step 03 --n {n} --d {d}",
        "problem": {"batch": 1, "heads": 1, "kv_heads": 1, "n_q": n, "n_k": n, "d": d, "dv": d, "scale": 0.5,
                    "causal": causal, "window": [-1, -1], "softcap": 0, "alibi": False, "mask": False, "dropout": 0},
        "tiles": {"br": br, "bc": bc}, "sram": {"capacity_bytes": 96, "budget": "paper"}, "cut": None,
        "chapters": [{"name": "forward", "first": 0}],
        "visible": [["".join("1" if sees(i, j) else "0" for j in range(n)) for i in range(n)]],
        "files": [{"path": SOURCE, "lines": lines}],
        "tensors": [{"name": name, "role": "input" if name in "QKV" else "output", "dtype": "fp32", "batch": 1,
                     "heads": 1, "rows": n, "cols": cols_of[name],
                     "values": [json_number(x) for row in {"Q": q, "K": k, "V": v}[name] for x in row]
                     if name in "QKV" else None} for name in names],
        "lanes": [], "steps": r.steps,
    }
