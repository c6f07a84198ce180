// The chosen row: its statistics before and after, and what each statement of this tile visit did to it, in numbers.

/** Names worth a line of "before → now", if the trace has them. */
const statistics = ["m", "l", "LSE", "D", "O"];

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
    this.root.innerHTML = `<div class="stats">${this.#statistics(state, visit)}</div>${this.#arithmetic(visit)}`;
    this.root.scrollTop = trace.isKernel ? 0 : this.root.scrollHeight;  // the last statement that ran
  }

  /** What the statements of the visit did to the row up to now. */
  #arithmetic(visit) {
    const { view, trace } = this, lines = [];
    if (trace.isKernel) return `<p class="muted">${kernelPlaces(trace)}</p>`;
    for (let k = visit.first; k < view.count; ++k) {
      const line = this.#line(trace.steps[k]), now = k === view.count - 1 ? "current" : "";
      if (line) lines.push(`<li class="${now}">${stepButton(k + 1, line)}</li>`);
    }
    return lines.length ? `<ol>${lines.join("")}</ol>` :
                          `<p class="muted">This tile visit has computed nothing for row ${view.row} up to now.</p>`;
  }

  #statistics(state, visit) {
    const { view, trace } = this, earlier = view.past.at(visit.first), alpha = this.#alpha(state);
    const names = statistics.filter((n) => trace.tensorNamed(n) || (trace.columnNames ?? []).flat().includes(n));
    const head = names.map((n) => (n === "O" ? `O<sub>${view.row},${view.channel}…</sub>` : n));
    const line = (title, note, at, last) => tr(rowHead(title, note), names.map((n) => td(this.#value(at, n))), last);
    return tableHtml({
      corner: rowHead(`row ${view.row}`),
      head: [...head, ...(alpha ? [`α = ${alpha.sign}`] : [])],
      rows: [
        line("before", "When this tile visit began", earlier, alpha ? td() : ""),
        line("now", "In SRAM where it is there, else in HBM", state, alpha ? td(shown(alpha.value)) : ""),
      ],
    });
  }

  /** What row i has under a name: in SRAM (m_new before m) or in HBM. */
  #value(state, name) {
    const { view, trace } = this, { row } = view;
    const from = name === "O" ? view.channel : 0, to = name === "O" ? Math.min(from + 3, trace.problem.dv) : 1;
    const list = (value) => Array.from({ length: to - from }, (_, k) => shown(value(from + k))).join(", ");
    const tile = !trace.isKernel && this.#tile(state, [`${name}_new`, name, `${name}_acc`]);
    if (tile) return list((c) => tile.values[(row - tile.rows[0]) * (tile.cols[1] - tile.cols[0]) + c]);
    for (const [k, t] of trace.tensors.entries()) {
      if (t.name !== name && t.name !== `${name}_acc`) continue;
      const first = trace.firstElement(t, view.batch, view.head) + row * t.cols;
      if (row < t.rows && state.tensors[k].written[first]) return list((c) => state.tensors[k].values[first + c]);
    }
    return undefined;
  }

  #tile(state, names) {
    const { row, batch, head } = this.view;
    for (const name of names)
      for (const tile of state.tiles.values())
        if (tile.name === name && tile.values && contains(tile.rows, row) && tile.batch === batch && tile.head === head)
          return tile;
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
    const { view } = this, { row } = view;
    if ((step.do !== "compute" && step.do !== "fill") || isOverKeys(step.name) || !contains(step.rows, row))
      return null;
    if ((step.batch ?? 0) !== view.batch || (step.head ?? 0) !== view.head) return null;
    const key = `${step.index} ${row} ${view.channel}`;
    if (!this.lines.has(key)) this.lines.set(key, this.#written(step, row));
    return this.lines.get(key);
  }

  #written(step, row) {
    const nc = step.cols[1] - step.cols[0], i = row - step.rows[0], isWide = isOverBoth(step.name);
    const j = isWide || nc === 1 ? 0 : Math.min(nc - 1, this.view.channel), formula = this.view.formulas.of(step);
    const values = Array.from(step.values.subarray(i * nc, (i + 1) * nc), (v) => shown(v)), result = values[j];
    const list = `(${values.slice(0, 8).join(", ")}${nc > 8 ? ", …" : ""})`;
    const name = `<b>${escaped(step.name)}</b><sub>${row}${isWide ? ",j" : nc > 1 ? `,${j}` : ""}</sub>`;
    if (!formula) return `${name} = ${list} by <code>${escaped(sourceOf(this.trace, step))}</code>`;
    if (isWide) return `${name} = ${formula.sym(i, "j")} = ${list}`;
    if (step.do === "fill") return `${name} = <b>${result}</b>`;
    const { n } = formula.value(i, j);
    return `${name} = ${formula.sym(i, j)}${n === result ? "" : ` = ${shortened(n)}`} = <b>${result}</b>`;
  }
}

/** Where a kernel holds what it computes. */
function kernelPlaces(trace) {
  const places = ["S", "P", "O"].map((name) => {
    const hbm = trace.tensorNamed(name) || trace.tensorNamed(`${name}_acc`) ? ["HBM"] : [];
    return { name, where: [...trace.spacesOf(name), ...hbm].join(", ") };
  });
  const list = places.filter(({ where }) => where).map(({ name, where }) => `<b>${name}</b> in ${where}`).join("; ");
  const isBeside = trace.steps.some((s) => s.takes);
  const seen = isBeside ? "Registers and shared memory stand beside the matrices." : "Its registers are not watched.";
  return `In this kernel: ${list}. ${seen}`;
}

/** A long sum or list in numbers, terms in its middle left out. */
function shortened(text, most = 90) {
  const sign = text.includes(" + ") ? " + " : ", ", terms = text.split(sign);
  if (text.length <= most || terms.length < 4) return text;
  let kept = 1;
  while (kept < terms.length - 2 && terms.slice(0, kept + 1).join(sign).length < most - 25) ++kept;
  return [...terms.slice(0, kept), "…", terms.at(-1)].join(sign);
}
