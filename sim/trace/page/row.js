// The chosen row: its statistics before and after, and what each statement of this tile visit did to it, in numbers.

/** Names worth a line of "before → now", if the trace has them. */
const statistics = ["m", "l", "LSE", "D"];

class RowPane {
  constructor(view, root) {
    this.view = view;
    this.trace = view.trace;
    this.root = root;
    this.lines = new Map();
  }

  draw(state) {
    const { view, trace } = this, visit = trace.visits[trace.visitOf[Math.max(0, view.count - 1)]];
    if (!visit) return;
    const lines = [];
    if (!trace.isKernel)
      for (let k = visit.first; k < view.count; ++k) {
        const line = this.#line(trace.steps[k]);
        if (line) lines.push(`<li class="${k === view.count - 1 ? "current" : ""}"><button data-step="${k + 1}" title="Go to step ${k + 1}">${line}</button></li>`);
      }
    const what = trace.isKernel ? "A kernel's rows are spread over the lanes of its warps: see the tiles in registers." :
      `Nothing was computed for row ${view.row} in this tile visit${view.count < visit.end ? " yet" : ""}.`;
    const list = lines.length ? `<ol>${lines.join("")}</ol>` : `<p class="muted">${what}</p>`;
    this.root.innerHTML = `<div class="stats"><table>${this.#statistics(state, visit)}</table></div>${list}`;
    this.root.scrollTop = this.root.scrollHeight;  // the last statement that ran
  }

  #statistics(state, visit) {
    const { view, trace } = this;
    const now = new Map(), before = new Map();
    const names = [...statistics, "O"].filter((n) => trace.tensorNamed(n) || (trace.columnNames ?? []).flat().includes(n));
    for (const name of names) now.set(name, this.#value(state, name));
    const alpha = this.#alpha(state);
    const earlier = view.past.at(visit.first);
    for (const name of names) before.set(name, this.#value(earlier, name));
    const cell = (v) => (v === undefined ? "<td class=muted>—</td>" : `<td>${v}</td>`);
    const head = [...names.map((n) => (n === "O" ? `O<sub>${view.row},${view.channel}…</sub>` : n)), ...(alpha ? [`α = ${alpha.sign}`] : [])];
    return `<thead><tr><th scope="row">row ${view.row}</th>${head.map((h) => `<th scope="col">${h}</th>`).join("")}</tr></thead>` +
      `<tbody><tr><th scope="row" title="When this tile visit began">before</th>${names.map((n) => cell(before.get(n))).join("")}${alpha ? cell() : ""}</tr>` +
      `<tr><th scope="row" title="After this step; in SRAM where it is there, else in HBM">now</th>${names.map((n) => cell(now.get(n))).join("")}${alpha ? cell(shown(alpha.value)) : ""}</tr></tbody>`;
  }

  /** What row i has under a name: in SRAM (m_new before m) or in HBM. */
  #value(state, name) {
    const { view, trace } = this, channel = name === "O" ? view.channel : 0, last = name === "O" ? Math.min(channel + 3, (trace.problem.dv ?? trace.problem.d)) : 1;
    const of = (value) => Array.from({ length: last - channel }, (_, k) => shown(value(channel + k))).join(", ");
    const tile = !trace.isKernel && this.#tile(state, [`${name}_new`, name, `${name}_acc`]);
    if (tile) return of((c) => tile.values[(view.row - tile.rows[0]) * (tile.cols[1] - tile.cols[0]) + c]);
    for (const [k, t] of trace.tensors.entries()) {
      if (t.name !== name && t.name !== `${name}_acc`) continue;
      const first = trace.firstElement(t, view.batch, view.head) + view.row * t.cols;
      if (view.row < t.rows && state.tensors[k].written[first]) return of((c) => state.tensors[k].values[first + c]);
    }
    return undefined;
  }

  #tile(state, names) {
    const { row, batch, head } = this.view;
    for (const name of names)
      for (const tile of state.tiles.values())
        if (tile.name === name && tile.values && contains(tile.rows, row) && tile.batch === batch && tile.head === head) return tile;
    return null;
  }

  /** The factor that brings the old sum and the old O under the new maximum. */
  #alpha(state) {
    const next = this.#tile(state, ["m_new"]), old = this.#tile(state, ["m", "LSE"]);
    if (!next || !old) return null;
    const at = (tile) => tile.values[this.view.row - tile.rows[0]];
    const isOldStill = old.since < next.since;
    return isOldStill ? { value: Math.exp(at(old) - at(next)), sign: `e^(${old.name} − m_new)` } : null;
  }

  #line(step) {
    const { view, trace } = this, { row } = view;
    if ((step.do !== "compute" && step.do !== "fill") || !step.rows || !contains(step.rows, row) || isOverKeys(step.name)) return null;
    if ((step.batch ?? 0) !== view.batch || (step.head ?? 0) !== view.head) return null;
    const key = `${step.index} ${row} ${view.channel}`;
    if (!this.lines.has(key)) this.lines.set(key, this.#written(step, row));
    return this.lines.get(key);
  }

  #written(step, row) {
    const nc = step.cols[1] - step.cols[0], i = row - step.rows[0], formula = this.view.formulas.of(step);
    const isWide = isOverBoth(step.name), j = isWide ? 0 : Math.min(nc - 1, nc > 1 ? this.view.channel : 0);
    const values = Array.from(step.values.subarray(i * nc, (i + 1) * nc));
    const name = `<b>${escaped(step.name)}</b><sub>${row}${isWide ? ",j" : nc > 1 ? `,${j}` : ""}</sub>`;
    const list = `(${values.slice(0, 8).map((v) => shown(v)).join(", ")}${nc > 8 ? ", …" : ""})`;
    if (!formula) return `${name} = ${list} by <code>${escaped(sourceOf(this.trace, step))}</code>`;
    if (isWide) return `${name} = ${formula.sym(i, "j")} = ${list}`;
    const value = formula.value(i, j), sym = formula.sym(i, j), result = shown(values[j]);
    const numbers = value.n === result ? "" : ` = ${shortened(value.n)}`;
    return `${name} = ${step.do === "fill" ? "" : sym}${numbers} ${step.do === "fill" ? "" : "= "}<b>${result}</b>`;
  }
}

/** A long sum or list in numbers, terms in its middle left out. */
function shortened(text, most = 90) {
  if (text.length <= most) return text;
  const head = text.slice(0, most - 30).match(/^.*(?: \+|,) /)?.[0] ?? text.slice(0, most - 30);
  const tail = text.slice(-26).match(/(?: \+|,) .*$/)?.[0].slice(text.slice(-26).includes(" + ") ? 3 : 2) ?? text.slice(-20);
  return `${head}… ${head.endsWith("+ ") ? "+ " : ""}${tail}`;
}
