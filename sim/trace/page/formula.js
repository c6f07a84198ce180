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
    const scope = { step, live: this.#live(state, step), before: state.tiles.get(step.tile), u: unitOf(this.trace) };
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

  /**
   * The newest live tile of each name, of the same worker, but of several one with the step's rows: its warp's. Those
   * taken with the step have no values yet.
   */
  #live(state, step) {
    const live = new Map();
    const released = new Set(step.releases ?? []);
    const isOfWarp = (tile) => tile?.rows[0] === step.rows?.[0] && tile?.rows[1] === step.rows?.[1];
    for (const tile of state.tiles.values())
      if (tile.worker === (step.worker ?? 0) && !released.has(tile.id))
        if (!isOfWarp(live.get(tile.name)) || isOfWarp(tile)) live.set(tile.name, {...tile });
    return live;
  }

  #meaning(statement, scope) {
    const rule = statement.value.kind === "call" ? modifiers[statement.value.method] : undefined;
    if (rule) return rule(this.trace, scope);
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
        if (node.method === "at") return this.#rowsAt(of(node.of), node.args[0].name, scope);
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

  /** x.at(own): a warp's rows of a tile, which are the step's; x.at(keys): those that are the columns of its S. */
  #rowsAt(x, range, { step, live }) {
    const keys = step.name === "S" ? step.cols : live.get("P").cols;
    const rows = range === "own" ? step.rows : keys, first = rows[0] - x.tile.rows[0];
    return x.with({
      nr: rows[1] - rows[0],
      at: (i, j) => x.at(i + first, j),
      sym: (i, j) => x.sym(typeof i === "number" ? i + first : i, j),
    });
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
}

/** Is the value of the trace what the formula gives, within the rounding of its format? */
function agrees(term, traced) {
  if (Number.isNaN(term.v) || Number.isNaN(traced)) return Number.isNaN(term.v) && Number.isNaN(traced);
  if (!Number.isFinite(traced) || !Number.isFinite(term.v)) return term.v === traced;
  return Math.abs(term.v - traced) <= term.e + 1e-37;
}
