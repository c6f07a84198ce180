// Values of an expression as functions of the cell: what it is, in signs and in numbers, and from which cells it comes.

/**
 * An operand [nr, nc]: a tile, or what an expression makes of tiles.
 * at(i, j)  → Term { v value, e bound of the error that rounding in the trace's format may make, n the numbers, cells }
 * sym(i, j) → the same in signs; i and j are numbers of the whole matrix, or letters under a sum
 */
class Operand {
  constructor(fields) {
    Object.assign(this, { scalar: false, array: false, diagonal: false, broadcast: false, factor: null }, fields);
  }
  with(fields) { return new Operand({...this, ...fields }); }
}

/** One unit in the last place of 1, for the format in which the statements compute. */
const unitOf = (trace) => (trace.dtype === "fp64" ? 2 ** -52 : 2 ** -23);

const term = (v, e, n, cells = [], tight = true) => ({ v, e: Number.isFinite(e) ? e : 0, n, cells, tight });
/** In brackets where it is a sum or difference that another sign would tear apart, or a negative number. */
const bracketed = (t) => (t.tight && !t.n.startsWith("−") ? t.n : `(${t.n})`);

function scalarOperand(value, name) {
  return new Operand({ scalar: true, nr: 1, nc: 1, at: () => term(value, 0, shown(value)), sym: () => name });
}

function tileOperand(tile, name) {
  const nr = tile.rows[1] - tile.rows[0], nc = tile.cols[1] - tile.cols[0];
  const isColumn = nc === 1 && !isOverBoth(tile.name) && !/^d?[QKVO]$/.test(baseName(tile.name));
  const index = (k, offset) => (typeof k === "number" ? k + offset : k);
  return new Operand({
    nr,
    nc,
    tile,
    at: (i, j) => {
      const v = tile.values ? tile.values[i * nc + j] : NaN;
      return term(v, 0, shown(v), [{ tile, i, j }]);
    },
    sym: (i, j) => `${name}<sub>${index(i, tile.rows[0])}${isColumn ? "" : `,${index(j, tile.cols[0])}`}</sub>`,
  });
}

/** sym in brackets where it holds a sign that would be torn apart. */
const bracketedSign = (text) =>
    (/^[^()]*[ ][+−][ ]/.test(text.replace(/<[^>]*>|\([^()]*\)/g, "")) ? `(${text})` : text);

class Arithmetic {
  constructor(trace) { this.u = unitOf(trace); }

  rounded(v, e) { return e + this.u * Math.abs(v); }

  plus(a, b, sign) {
    const n = (s, t) => `${s.n} ${sign > 0 ? "+" : "−"} ${bracketed(t)}`;
    return this.elementwise(a, b, (s, t) => {
      const v = s.v + sign * t.v;
      return term(v, this.rounded(v, s.e + t.e), n(s, t), [...s.cells, ...t.cells], false);
    }, (s, t) => `${s} ${sign > 0 ? "+" : "−"} ${sign > 0 ? t : bracketedSign(t)}`);
  }

  times(a, b) {
    return this.elementwise(a, b, (s, t) => {
      const v = s.v * t.v;
      return term(
          v, this.rounded(v, Math.abs(s.v) * t.e + Math.abs(t.v) * s.e), `${bracketed(s)}·${bracketed(t)}`,
          [...s.cells, ...t.cells]);
    }, (s, t) => `${bracketedSign(s)}·${bracketedSign(t)}`);
  }

  larger(a, b) {
    return this.elementwise(
        a, b, (s, t) => term(Math.max(s.v, t.v), Math.max(s.e, t.e), `max(${s.n}, ${t.n})`, [...s.cells, ...t.cells]),
        (s, t) => `max(${s}, ${t})`);
  }

  /** A scalar or a column stretches over the other operand. */
  elementwise(a, b, f, sym) {
    const wide = a.scalar || (!b.scalar && b.nc > a.nc) ? b : a;
    const pick = (x, i, j) => (x.scalar ? [0, 0] : x.nc === 1 && wide.nc > 1 ? [i, 0] : [i, j]);
    return new Operand({
      nr: wide.nr,
      nc: wide.nc,
      scalar: a.scalar && b.scalar,
      array: a.array || b.array,
      at: (i, j) => f(a.at(...pick(a, i, j)), b.at(...pick(b, i, j))),
      sym: (i, j) => sym(a.sym(...pick(a, i, j)), b.sym(...pick(b, i, j))),
    });
  }

  map(a, f, sym) {
    return a.with({ at: (i, j) => f(a.at(i, j)), sym: (i, j) => sym(a.sym(i, j)), tile: undefined, factor: null });
  }

  exp(a) {
    return this.map(a, (s) => {
      const v = Math.exp(s.v);
      return term(v, v * (Math.expm1(Math.min(s.e, 1)) + 4 * this.u) + 2e-38, `e^(${s.n})`, s.cells);
    }, (s) => `e^(${s})`);
  }

  log(a) {
    return this.map(a, (s) => {
      const v = Math.log(s.v);
      return term(v, s.e / Math.abs(s.v) + 4 * this.u * Math.max(1, Math.abs(v)), `ln ${bracketed(s)}`, s.cells);
    }, (s) => `ln ${bracketedSign(s)}`);
  }

  inverse(a) {
    return this.map(a, (s) => {
      const v = 1 / s.v;
      return term(v, this.rounded(2 * v, Math.abs(v * v) * s.e), `1/${bracketed(s)}`, s.cells);
    }, (s) => `1/${bracketedSign(s)}`);
  }

  /** Over a row: sum or maximum. */
  overRow(a, f) {
    const terms = (i) => Array.from({ length: a.nc }, (_, j) => a.at(i, j));
    return new Operand(
        { nr: a.nr, nc: 1, at: (i) => f(terms(i)), sym: (i) => `${f.sign} ${bracketedSign(a.sym(i, "j"))}` });
  }

  sumOverRow(a) {
    const sum = Object.assign((terms) => this.sum(terms), { sign: "Σ<sub>j</sub>" });
    return this.overRow(a, sum);
  }

  maxOverRow(a) {
    const max = (terms) => term(
        terms.reduce((m, t) => (t.v > m || Number.isNaN(t.v) ? t.v : m), -Infinity),
        Math.max(0, ...terms.map((t) => t.e)), `max(${joined(terms, ", ")})`, terms.flatMap((t) => t.cells));
    return this.overRow(a, Object.assign(max, { sign: "max<sub>j</sub>" }));
  }

  /** In any order of the additions. */
  sum(terms) {
    let v = 0, e = 0, all = 0;
    for (const t of terms) (v += t.v), (e += t.e), (all += Math.abs(t.v));
    const n = terms.length === 1 ? terms[0].n : joined(terms, " + ");
    return term(
        v, e + (terms.length + 1) * this.u * all, n || "0", terms.flatMap((t) => t.cells),
        terms.length === 1 && terms[0].tight);
  }

  /** A scalar in front of a matrix goes out in front of the sum. */
  product(a, b) {
    if (a.diagonal) return this.times(a.with({ diagonal: false }), b);
    const left = a.factor ? a.factor.of : a, factor = a.factor?.scalar;
    const at = (i, j) => {
      const terms = [];
      for (let k = 0; k < left.nc; ++k) {
        const s = left.at(i, k), t = b.at(k, j), v = s.v * t.v;
        terms.push(term(v, this.u * Math.abs(v), `${bracketed(s)}·${bracketed(t)}`, [...s.cells, ...t.cells]));
      }
      return this.sum(terms);
    };
    const sym = (i, j) => `Σ<sub>k</sub> ${left.sym(i, "k")}·${b.sym("k", j)}`;
    const inner = new Operand({ nr: left.nr, nc: b.nc, at, sym });
    return factor ? this.times(factor, inner) : inner;
  }

  scaled(scalar, of) { return Object.assign(this.times(scalar, of), { factor: { scalar, of } }); }

  multiply(a, b) {
    if (a.scalar && !b.scalar) return this.scaled(a, b);
    if (a.array || b.array || a.scalar || b.scalar) return this.times(a, b);
    return this.product(a, b);
  }
}

/** The numbers of many terms, the middle left out. */
function joined(terms, sign, most = 16) {
  const n = terms.map((t) => (sign === " + " && t.n.startsWith("−") && t.tight ? `(${t.n})` : t.n));
  if (n.length <= most) return n.join(sign);
  return [...n.slice(0, most - 2), `… ${n.length - most + 1} more …`, n.at(-1)].join(sign);
}
