// "How is this cell computed": the statement that made it, in signs and in numbers, and the cells that it came from.

class CellPane {
  constructor(view, root) {
    this.view = view;
    this.root = root;
    root.innerHTML = `<div class="cell-head"><b>Cell</b>
      <select class="cell-name" aria-label="Matrix of the cell"></select>
      <label>row <input class="cell-row" type="number" min="0" aria-label="Row of the cell"></label>
      <label>column <input class="cell-col" type="number" min="0" aria-label="Column of the cell"></label>
      <button class="cell-none" aria-label="No cell">✕</button></div>
      <div class="cell-card"></div>
      <details class="as-table"><summary>The step's tile as a table</summary><div></div></details>`;
    const [name, row, col] = ["name", "row", "col"].map((k) => root.querySelector(`.cell-${k}`));
    this.inputs = { name, row, col };
    const choose = () => this.view.choose(
        { cell: name.value ? { name: name.value, i: Number(row.value) || 0, j: Number(col.value) || 0 } : null });
    for (const input of [name, row, col]) input.onchange = choose;
    root.querySelector(".cell-none").onclick = () => this.view.choose({ cell: null });
    this.table = root.querySelector(".as-table");
    this.table.ontoggle = () => this.view.draw();
  }

  /** @returns the cells that the shown formula reads, for the picture to light up */
  draw(state, picture) {
    const { cell } = this.view;
    this.#drawInputs(cell, picture);
    if (this.table.open) this.#drawTable(state);
    const card = this.root.querySelector(".cell-card");
    if (!cell) {
      card.innerHTML = `<p class="muted">Click a cell of the picture: how it was computed, with its numbers.</p>`;
      return [];
    }
    const { html, sources } = this.#explained(cell, picture);
    card.innerHTML = html;
    return sources;
  }

  #drawInputs(cell, picture) {
    const { name, row, col } = this.inputs, names = [...picture.slots.keys()];
    if (cell && !names.includes(cell.name)) names.push(cell.name);
    const key = names.join();
    if (name.dataset.names !== key) {
      name.innerHTML = option("", "none") + names.map((n) => option(n)).join("");
      name.dataset.names = key;
    }
    name.value = cell?.name ?? "";
    row.value = cell?.i ?? "";
    col.value = cell?.j ?? "";
  }

  #explained(cell, picture) {
    const { trace, batch, head } = this.view, where = picture.valueOf(cell), origin = this.#origin(cell);
    const isMasked = isOverBoth(cell.name) && cell.tile === undefined && !trace.sees(batch, head, cell.i, cell.j);
    const masked = isMasked ? ` · masked: query ${cell.i} does not see key ${cell.j}` : "";
    const title = `<p><b>${escaped(cell.name)}</b><sub>${cell.i},${cell.j}</sub> ${this.#places(where, cell)}${masked}</p>`;
    if (!origin.step)
      return { html: `${title}<p class="muted">${this.#withoutOrigin(cell, where, origin)}</p>`, sources: [] };
    const { html, sources } = this.#formula(origin, cell);
    return { html: title + html, sources };
  }

  #places({ sram, hbm }, cell) {
    if (this.#isNeverInHbm(cell)) return `is in ${this.view.trace.spacesOf(cell.name).join(", ") || "registers"}`;
    const part = (value, place) => (value === undefined ? [] : [`in ${place} <b>${shown(value, 6)}</b>`]);
    const parts = [...part(sram, "SRAM"), ...part(hbm, "HBM")];
    return parts.length ? parts.join(" · ") : "is nowhere now: not written, or gone from SRAM";
  }

  #withoutOrigin(cell, { sram, hbm }, { loaded }) {
    const isInput = this.view.trace.tensorNamed(cell.name)?.role === "input";
    if (isInput) return `An input: given, not computed${loaded ? `; loaded last at step ${loaded.index + 1}` : ""}.`;
    if (this.#isNeverInHbm(cell)) return "It is never in HBM: look at the tiles beside the matrices, and click there.";
    const isNowhere = sram === undefined && hbm === undefined;
    return isNowhere ? "Nothing has computed it up to this step." : "No step up to here has computed it.";
  }

  /** S and P of most kernels. */
  #isNeverInHbm({ name, tile }) {
    const { trace } = this.view;
    return trace.isKernel && tile === undefined && !trace.tensorNamed(name) && !trace.tensorNamed(`${name}_acc`);
  }

  /** The last step up to now that computed the cell; if it came to HBM by another tile, that tile's. */
  #origin(cell) {
    const { view } = this, { trace } = view, result = { step: null, stored: null, loaded: null };
    if (trace.isKernel) return { ...result, step: this.#kernelOrigin(cell) };
    let tile;
    for (let k = view.count - 1; k >= 0; --k) {
      const step = trace.steps[k];
      if (!step.rows || !this.#covers(step, cell)) continue;
      const made = step.do === "compute" || step.do === "fill";
      if (made && (tile === undefined ? this.#isNamed(step.name, cell.name) : step.tile === tile))
        return {...result, step };
      if (tile !== undefined || made || !this.#isNamed(trace.subject(step), cell.name)) continue;
      if (step.do === "load")
        result.loaded ??= step;
      else
        (result.stored = step), (tile = step.tile);
    }
    return result;
  }

  #isNamed(name, slot) { return name === slot || baseName(name) === slot; }

  #covers(step, cell) {
    const { view } = this, { heads, kv_heads: kv } = view.trace.problem, group = (h) => Math.floor((h * kv) / heads);
    const sameHead =
        isOverKeys(cell.name) ? group(step.head ?? 0) === group(view.head) : (step.head ?? 0) === view.head;
    return sameHead && (step.batch ?? 0) === view.batch && contains(step.rows, cell.i) &&
        contains(step.cols ?? [0, 1], cell.j);
  }

  /** The last step up to now of a kernel that changed the element, of a tile or of the cell's tensors. */
  #kernelOrigin({ name, tile, i, j }) {
    const { trace, batch, head, count, replay } = this.view, elements = new Map();  // by tile or tensor
    if (tile !== undefined) {
      const [first, end] = replay.at(count).tiles.get(tile)?.cols ?? [0, 0];
      elements.set(tile, i * (end - first) + j);
    } else {
      for (const [k, t] of trace.tensors.entries())
        if (baseName(t.name) === name) elements.set(k, trace.firstElement(t, batch, head) + i * t.cols + j);
    }
    const makes = (change) => {
      const element = elements.get(tile === undefined ? change.tensor : change.tile), first = change.first ?? 0;
      return element !== undefined && contains([first, first + change.values.length], element);
    };
    return trace.steps.slice(0, count).findLast((step) => step.changes?.some(makes)) ?? null;
  }

  #formula({ step, stored }, cell) {
    const { view } = this, { trace } = view, by = this.#statement(step, stored);
    const formula = trace.isKernel ? null : view.formulas.of(step);
    if (!formula) {
      const what = trace.isKernel ? `${stepInWords(trace, step)}. ` : "";
      return { html: `${by}<p class="muted">${what}The page has no formula for this statement.</p>`, sources: [] };
    }
    const i = cell.i - step.rows[0], j = cell.j - step.cols[0], nc = step.cols[1] - step.cols[0];
    const value = formula.value(i, j), traced = step.values[i * nc + j], sym = formula.sym(i, j);
    const name = `${escaped(step.name)}<sub>${cell.i}${nc > 1 || isOverBoth(step.name) ? `,${cell.j}` : ""}</sub>`;
    const lines = [`${name} = ${sym}`, ...(value.n === sym ? [] : [value.n]), `<b>${shown(traced, 6)}</b>`];
    const differs = `<p class="warn">The formula gives ${shown(value.v, 7)}; the trace holds ${shown(traced, 7)}.</p>`;
    return {
      html: `${by}<p class="formula">${lines.join("<br>&nbsp;= ")}</p>${agrees(value, traced) ? "" : differs}`,
      sources: value.cells.map(({ tile, i, j }) => ({ name: tile.name, i: i + tile.rows[0], j: j + tile.cols[0] })),
    };
  }

  #statement(step, stored) {
    const { trace, count } = this.view, file = step.at && trace.files[step.at[0]].path.split("/").pop();
    const at = step.index + 1, verb = trace.isKernel ? "changed" : "computed";
    const now = at === count ? `${verb} now` : `${verb} at ${stepButton(at, `step ${at}`)}`;
    const source = step.at ? `${file}:${step.at[1]}: <code>${escaped(sourceOf(trace, step))}</code>` : "";
    return `<p>${now} ${source}${stored ? `; stored at step ${stored.index + 1}` : ""}</p>`;
  }

  #drawTable(state) {
    const { step } = this.view, into = this.table.querySelector("div");
    const id = step?.tile ?? step?.changes?.find((c) => c.tile !== undefined)?.tile, tile = state.tiles.get(id);
    if (!tile?.values) return (into.innerHTML = "<p>This step has no tile with values.</p>");
    const nc = tile.cols[1] - tile.cols[0], nr = tile.rows[1] - tile.rows[0];
    const line = (_, r) =>
        tr(rowHead(r + tile.rows[0]), Array.from(tile.values.subarray(r * nc, (r + 1) * nc), (v) => td(shown(v))));
    into.innerHTML = tableHtml({
      caption: `${escaped(tile.name)}: ${isOverKeys(tile.name) ? "keys" : "rows"} down, columns across`,
      head: Array.from({ length: nc }, (_, c) => c + tile.cols[0]),
      rows: Array.from({ length: nr }, line),
    });
  }
}
