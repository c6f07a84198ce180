// How a cell was computed: the statement at the step's source line, with the tiles that were live when it ran.

class Formulas {
  constructor(trace, replay) {
    this.trace = trace;
    this.replay = replay;  // of its own: it looks back
    this.arithmetic = new Arithmetic(trace);
  }

  /**
   * @param step that computes, fills or rounds a tile
   * @returns {{statement: string, sym, value}|null} sym(i, j) and value(i, j) of the tile's own rows and columns
   */
  of(step) {
    const state = this.replay.at(step.index);
    if (step.do === "fill") return this.#filled(step);
    if (step.do !== "compute" || !step.values) return null;
    const statement = statementOf(this.trace, step);
    if (!statement) return null;
    const scope = { step, live: this.#live(state, step), before: state.tiles.get(step.tile) };
    try {
      const operand = this.#meaning(statement, scope);
      return operand && { statement: statement.text, sym: operand.sym, value: operand.at };
    } catch {
      return null;
    }
  }

  /** The live tiles that the step's statement names: what it reads. */
  operandsOf(step) {
    if (step.do !== "compute" || !step.at) return [];
    const live = this.#live(this.replay.at(step.index), step), found = new Set();
    for (const name of sourceOf(this.trace, step).match(/[A-Za-z_]\w*/g) ?? [])
      for (const candidate of tileNames(name))
        if (live.get(candidate)?.values) found.add(live.get(candidate));
    return [...found];
  }

  #filled(step) {
    const v = step.values[0];
    return { statement: sourceOf(this.trace, step), sym: () => shown(v), value: () => term(v, 0, shown(v)) };
  }

  /** The newest live tile of each name, of the same worker; those taken with the step have no values yet. */
  #live(state, step) {
    const live = new Map();
    const released = new Set(step.releases ?? []);
    for (const tile of state.tiles.values())
      if (tile.worker === (step.worker ?? 0) && !released.has(tile.id)) live.set(tile.name, {...tile });
    return live;
  }

  #meaning(statement, scope) {
    const call = statement.value.kind === "call" ? statement.value : null;
    const special =
        call && { apply: "applied",
                  derivative: "derivative",
                  dropout: "dropped",
                  round: "rounded",
                  dropped: "copied" }[call.method];
    if (special) return this[special](scope, call);
    if (statement.op === "call") return null;
    const value = this.#evaluate(statement.value, scope);
    return statement.op === "=" ? value : this.arithmetic.plus(this.#variable(statement.target, scope), value, 1);
  }

  #variable(name, { live }) {
    for (const candidate of tileNames(name))
      if (live.get(candidate)?.values) return tileOperand(live.get(candidate), candidate);
    throw new Error(`${name} is no live tile`);
  }

  #evaluate(node, scope) {
    const a = this.arithmetic, of = (n) => this.#evaluate(n, scope);
    switch (node.kind) {
      case "number":
        return scalarOperand(node.value, String(node.value));
      case "name":
        return this.#named(node.name, scope);
      case "member":
        if (node.method === "scale") return scalarOperand(this.trace.problem.scale, "scale");
        break;
      case "minus":
        return a.multiply(scalarOperand(-1, "−1"), of(node.a));
      case "binary": {
        const [x, y] = [of(node.a), of(node.b)];
        if (node.op === "+" || node.op === "-") return a.plus(x, y, node.op === "+" ? 1 : -1);
        if (node.op === "*") return a.multiply(x, y);
        break;
      }
      case "call":
        return node.of ? this.#method(of(node.of), node, of) : this.#function(node, of);
    }
    throw new Error(`no rule for ${node.kind}`);
  }

  #named(name, scope) {
    const lowest = this.trace.dtype === "fp64" ? -Number.MAX_VALUE : -3.4028234663852886e38;
    if (name.startsWith("lowest<")) return scalarOperand(lowest, "lowest");
    if (name.startsWith("infinity<")) return scalarOperand(Infinity, "∞");
    return this.#variable(name, scope);
  }

  #function(node, of) {
    const a = this.arithmetic;
    if (node.method === "inverse_of_sum") return a.inverse(a.larger(of(node.args[0]), scalarOperand(1, "1")));
    throw new Error(`no rule for ${node.method}`);
  }

  #method(x, node, of) {
    const a = this.arithmetic;
    switch (node.method) {
      case "array":
        return x.with({ array: true });
      case "matrix":
      case "eval":
      case "derived":
        return x.with({ array: false });
      case "colwise":
        return x;
      case "rowwise":
        return x.with({ byRow: true });
      case "transpose":
        return x.with({ nr: x.nc, nc: x.nr, at: (i, j) => x.at(j, i), sym: (i, j) => x.sym(j, i) });
      case "asDiagonal":
        return x.with({ diagonal: true });
      case "exp":
        return a.exp(x);
      case "log":
        return a.log(x);
      case "cwiseInverse":
        return a.inverse(x);
      case "cwiseMax":
        return a.larger(x, of(node.args[0]));
      case "cwiseProduct":
        return a.times(x, of(node.args[0]));
      case "sum":
        if (x.byRow) return a.sumOverRow(x);
        break;
      case "maxCoeff":
        if (x.byRow) return a.maxOverRow(x);
        break;
    }
    throw new Error(`no rule for ${node.method}`);
  }

  // ---- what the options do to a tile: statements that call for a rule

  /** How many steps at this line have changed this tile before, in this execution of the line. */
  #turn(step) {
    let turn = 0;
    for (let k = step.index - 1; k >= 0; --k) {
      const earlier = this.trace.steps[k];
      if (!earlier.at || this.trace.lineKey(earlier.at) !== this.trace.lineKey(step.at)) break;
      if (earlier.tile === step.tile && earlier.do === "compute") ++turn;
    }
    return turn;
  }

  #eachOf(tile, f, sym) {
    const x = tileOperand(tile, tile.name);
    return new Operand(
        {...x, at: (i, j) => f(x.at(i, j), i + tile.rows[0], j + tile.cols[0]), sym: (i, j) => sym(x.sym(i, j)) });
  }

  /** mask.apply: softcap, ALiBi, position, explicit mask, each if asked for. */
  applied(scope) {
    const { problem } = this.trace, { step, before } = scope, u = this.arithmetic.u;
    const kinds = [
      problem.softcap > 0 && "softcap", problem.alibi && "alibi",
      !isTileFull(problem, step.rows, step.cols) && "position", problem.mask && "mask"
    ].filter(Boolean);
    const c = problem.softcap, slope = problem.alibi ? this.#slope(step) : 0;
    const hidden = (s, isSeen, why) =>
        term(isSeen ? s.v : -Infinity, 0, isSeen ? `${s.n}: ${why}` : `−∞: ${why}`, s.cells);
    switch (kinds[this.#turn(step)]) {
      case "softcap":
        return this.#eachOf(before, (s) => {
          const v = c * Math.tanh(s.v / c);
          return term(v, 8 * u * Math.abs(v) + 2 * u * Math.abs(s.v), `${shown(c)}·tanh(${s.n}/${shown(c)})`, s.cells);
        }, (s) => `c·tanh(${s}/c)`);
      case "alibi":
        return this.#eachOf(before, (s, i, j) => {
          const distance = alibiDistance(problem, i, j), v = s.v - slope * distance;
          return term(
              v, u * (Math.abs(v) + Math.abs(slope * distance)), `${s.n} − ${shown(slope)}·${distance}`, s.cells,
              false);
        }, (s) => `${s} − slope·distance`);
      case "position":
        return this.#eachOf(before, (s, i, j) => {
          const isSeen = seenByPosition(problem, i, j);
          return hidden(s, isSeen, `query ${i} ${isSeen ? "sees" : "does not see"} key ${j}`);
        }, (s) => `${s} where the query sees the key, else −∞`);
      case "mask": {
        const allowed = scope.live.get("mask");
        return allowed && this.#eachOf(before, (s, i, j) => {
          const k = (i - allowed.rows[0]) * (allowed.cols[1] - allowed.cols[0]) + j - allowed.cols[0],
                isSeen = allowed.values[k] !== 0;
          return hidden(s, isSeen, `the mask is ${shown(allowed.values[k])}`);
        }, (s) => `${s} where the mask is not 0, else −∞`);
      }
    }
    return null;
  }

  #slope(step) {
    const slopes = this.trace.tensorNamed("slopes");
    return slopes.initial[this.trace.firstElement(slopes, step.batch ?? 0, step.head ?? 0)];
  }

  /** mask.derivative: dS through the softcap. */
  derivative({ step, live, before }) {
    const { problem } = this.trace, c = problem.softcap, u = this.arithmetic.u, S = live.get("S");
    const slope = problem.alibi ? this.#slope(step) : 0;
    return this.#eachOf(before, (ds, i, j) => {
      const k = (i - S.rows[0]) * (S.cols[1] - S.cols[0]) + j - S.cols[0], s = S.values[k];
      const cells = [...ds.cells, { tile: S, i: i - S.rows[0], j: j - S.cols[0] }];
      if (s === -Infinity) return term(0, 0, "0: the query does not see the key", cells);
      const bias = slope * alibiDistance(problem, i, j), tanh = (s + bias) / c, v = ds.v * (1 - tanh * tanh);
      const e = 8 * u * Math.abs(ds.v) * (1 + (Math.abs(s) + Math.abs(bias)) / c);
      return term(v, e, `${bracketed(ds)}·(1 − ${bracketed(term(0, 0, shown(tanh)))}²)`, cells);
    }, (s) => `${s}·(1 − tanh²)`);
  }

  /** dropout: entries go by their position, others grow. */
  dropped({ step, before }) {
    const { problem } = this.trace, p = problem.dropout, kept = 1 / (1 - p), seed = problem.dropout_seed ?? 0;
    return this.#eachOf(before, (x, i, j) => {
      const keeps = dropoutWord(seed, step.batch ?? 0, step.head ?? 0, i, j) >= p * 2 ** 32;
      if (!keeps) return term(0, 0, "0: dropped", x.cells);
      const v = x.v * kept;
      return term(v, 4 * this.arithmetic.u * Math.abs(v), `${bracketed(x)}·${shown(kept)}`, x.cells);
    }, (s) => `${s} / (1 − p) where kept, else 0`);
  }

  /** P.round: as the matrix unit takes it. */
  rounded({ before }) {
    const half = { fp16: 2 ** -11, bf16: 2 ** -8 }[this.trace.dtype] ?? 0;
    return this.#eachOf(
        before,
        (x) => term(x.v, half * Math.abs(x.v) + (half && 2 ** -25), `${x.n} rounded to ${this.trace.dtype}`, x.cells),
        (s) => `${s} rounded to ${this.trace.dtype}`);
  }

  /** dropped(P, …): P is rounded; with dropout copied, dropped and the copy rounded. */
  copied(scope) {
    const { step, live } = scope;
    if (step.name === "P") return this.rounded(scope);
    const turn = this.#turn(step);
    if (turn === 0) return tileOperand(live.get("P"), "P");
    return turn === 1 ? this.dropped(scope) : this.rounded(scope);
  }
}

/** Is the value of the trace what the formula gives, within the rounding of its format? */
function agrees(term, traced) {
  if (Number.isNaN(term.v) || Number.isNaN(traced)) return Number.isNaN(term.v) && Number.isNaN(traced);
  if (!Number.isFinite(traced) || !Number.isFinite(term.v)) return term.v === traced;
  return Math.abs(term.v - traced) <= term.e + 1e-37;
}
