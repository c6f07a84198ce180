// The attention picture: every matrix at its place, with what is in HBM, what is in SRAM and what moves now.

class Picture {
  constructor(trace, canvas) {
    this.trace = trace;
    this.canvas = canvas;
    this.shelf = [];
  }

  /**
   * @param state {State} after the current step
   * @param now { step or null, operands, batch, head, row, cell, visit, palette }
   */
  prepare(state, now) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    Object.assign(this, now, { state });
    this.shelfWidth = this.#shelfWidth(w);
    this.slots = laidOut(this.trace, w - this.shelfWidth, h, this.trace.isBackwardAt(state.count));
    this.tilesOfSlot = this.#tilesBySlot();
  }

  /** Of a kernel with something in shared memory or watched registers. */
  #shelfWidth(width) {
    this.hasShelf ??= this.trace.isKernel && this.trace.steps.some((s) => s.takes);
    return this.hasShelf ? Math.round(width * 0.45) : 0;
  }

  /** The height that the picture takes at this width, if there is enough. */
  heightFor(count, width, most) {
    const slots = laidOut(this.trace, width, most, this.trace.isBackwardAt(count));
    return Math.max(...[...slots.values()].map((s) => s.y + s.h));
  }

  /** @param sources cells that the shown formula reads */
  draw(sources) {
    const g = prepared(this.canvas), { clientWidth: w, clientHeight: h } = this.canvas;
    this.sources = sources;
    for (const slot of this.slots.values()) this.#drawSlot(g, slot);
    this.shelf = this.shelfWidth ? drawShelf(g, this, w - this.shelfWidth + 8, h) : [];
    this.#drawVisit(g);
    this.#drawMoves(g);
    this.#drawRow(g);
    this.#drawSources(g);
  }

  /** What lies at a point of the canvas: { name, i, j } of a matrix, or { name, tile, i, j } of a tile on the shelf. */
  cellAt(x, y) {
    for (const box of [...this.shelf, ...this.slots.values()]) {
      const c = Math.floor((x - box.x) / box.cw), r = Math.floor((y - box.y) / box.ch);
      if (r < 0 || c < 0 || r >= box.rows || c >= box.cols) continue;
      const [i, j] = box.turned ? [c, r] : [r, c];
      return box.tile ? { name: box.name, tile: box.tile.id, i, j } : { name: box.name, i, j };
    }
    return null;
  }

  /** What a cell holds: in SRAM, in HBM; undefined where it is not there. */
  valueOf({ name, tile, i, j }) {
    if (tile !== undefined) {
      const shelved = this.state.tiles.get(tile);
      return { sram: shelved && valueIn(shelved, i, j), hbm: undefined };
    }
    const inSram = (this.tilesOfSlot.get(name) ?? []).find((t) => contains(t.rows, i) && contains(t.cols, j));
    return {
      sram: inSram && valueIn(inSram, i - inSram.rows[0], j - inSram.cols[0]),
      hbm: this.#hbm(name)?.(i, j)?.value,
    };
  }

  #tilesBySlot() {
    const bySlot = new Map();
    for (const tile of this.state.tiles.values()) {
      if (this.trace.isKernel || tile.batch !== this.batch || !this.#isOfHead(tile)) continue;
      const name = this.slots.has(tile.name) ? tile.name : baseName(tile.name);
      bySlot.set(name, [...(bySlot.get(name) ?? []), tile]);
    }
    return bySlot;
  }

  #isOfHead(tile) {
    const { heads, kv_heads: kv } = this.trace.problem, group = (h) => Math.floor((h * kv) / heads);
    return isOverKeys(tile.name) ? group(tile.head) === group(this.head) : tile.head === this.head;
  }

  /** What the tensors of a slot hold, the accumulator's last: (i, j) → { value, isFinal }, undefined if unwritten. */
  #hbm(name) {
    const { trace, state, batch, head } = this;
    const tensors =
        trace.tensors.map((t, k) => ({ t, k })).filter(({ t }) => t.name === name || t.name === `${name}_acc`);
    if (!tensors.length) return null;
    tensors.sort((a, b) => a.t.name.length - b.t.name.length);
    return (i, j) => {
      for (const { t, k } of tensors) {
        const element = trace.firstElement(t, batch, head) + i * t.cols + j;
        if (state.tensors[k].written[element])
          return {
            value: state.tensors[k].values[element],
            isFinal: t.name === name && trace.lastWrite[k][element] < state.count
          };
      }
      return undefined;
    };
  }

  #drawSlot(g, slot) {
    const { palette, trace } = this, scale = trace.scale[slot.name] ?? 0, hbm = this.#hbm(slot.name);
    const tiles = this.tilesOfSlot.get(slot.name) ?? [];
    const at = (r, c) => (slot.turned ? [c, r] : [r, c]);
    const inTile = (i, j) => tiles.find((t) => t.values && contains(t.rows, i) && contains(t.cols, j));
    const value = (r, c) => {
      const [i, j] = at(r, c), tile = inTile(i, j);
      return tile ? valueIn(tile, i - tile.rows[0], j - tile.cols[0]) : hbm?.(i, j)?.value;
    };
    const color = (r, c) => {
      const v = value(r, c);
      return v === undefined ? null : palette.ofValue(v, scale);
    };
    this.#drawLabel(g, slot);
    g.fillStyle = `rgb(${palette.empty})`;
    g.fillRect(slot.x, slot.y, slot.w, slot.h);
    g.fillStyle = palette.hatches.empty;
    g.fillRect(slot.x, slot.y, slot.w, slot.h);
    if (!hbm || slot.name.length < 3) this.#drawGone(g, slot, hbm);
    paintCells(g, slot, color);
    paintGrid(g, slot, palette.line);
    this.#drawStale(g, slot, hbm, inTile, at);
    if (isOverBoth(slot.name)) this.#drawMasked(g, slot);
    paintNumbers(g, slot, value, color);
    g.strokeStyle = palette.line;
    g.lineWidth = 1;
    g.strokeRect(slot.x - 0.5, slot.y - 0.5, slot.w + 1, slot.h + 1);
    for (const tile of tiles) paintFrame(g, this.#box(slot, tile.rows, tile.cols), { color: palette.ink, width: 1.5 });
  }

  #drawLabel(g, slot) {
    g.font = labelFont;
    g.fillStyle = this.palette.ink;
    g.textAlign = slot.isColumn ? "center" : "left";
    g.textBaseline = "alphabetic";
    if (!slot.isColumn) return g.fillText(slot.name + (slot.turned ? "ᵀ" : ""), slot.x, slot.y - 5);
    const [name, suffix] = slot.name.split("_"), middle = slot.x + slot.w / 2;
    g.fillText(name, middle, slot.y - (suffix ? 15 : 5));
    g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    if (suffix) g.fillText(suffix, middle, slot.y - 5);
  }

  /** Parts that were in SRAM, are there no more and never went to HBM. */
  #drawGone(g, slot, hbm) {
    for (const part of this.state.gone.values()) {
      if (part.name !== slot.name || part.batch !== this.batch || part.head !== this.head) continue;
      if (hbm?.(part.rows[0], part.cols[0])) continue;
      const box = this.#box(slot, part.rows, part.cols);
      g.fillStyle = this.palette.hatches.gone;
      g.fillRect(box.x, box.y, box.w, box.h);
    }
  }

  /** HBM that will be written again. */
  #drawStale(g, slot, hbm, inTile, at) {
    if (!hbm) return;
    g.fillStyle = this.palette.hatches.stale;
    forEachRun(slot, (r, c) => {
      const [i, j] = at(r, c);
      return !inTile(i, j) && hbm(i, j)?.isFinal === false && !this.#isInput(slot.name);
    }, (r, from, to) => g.fillRect(slot.x + from * slot.cw, slot.y + r * slot.ch, (to - from) * slot.cw, slot.ch));
  }

  #isInput(name) { return this.trace.tensorNamed(name)?.role === "input"; }

  #drawMasked(g, slot) {
    g.fillStyle = this.palette.hatches.masked;
    forEachRun(
        slot, (i, j) => !this.trace.sees(this.batch, this.head, i, j),
        (r, from, to) => g.fillRect(slot.x + from * slot.cw, slot.y + r * slot.ch, (to - from) * slot.cw, slot.ch));
  }

  /** The part [rows, cols] of a slot's matrix as it is drawn. */
  #box(slot, rows, cols) {
    const [ys, xs] = slot.turned ? [cols, rows] : [rows, slot.isColumn ? [0, 1] : cols];
    return {
      x: slot.x + xs[0] * slot.cw,
      y: slot.y + ys[0] * slot.ch,
      w: (xs[1] - xs[0]) * slot.cw,
      h: (ys[1] - ys[0]) * slot.ch
    };
  }

  #slotOf(name) { return this.slots.get(name) ?? this.slots.get(baseName(name)); }

  /** What the step reads, in blue with an R, and what it writes or computes, in orange, dashed, with a W or =. */
  #drawMoves(g) {
    const { step, palette, trace } = this;
    if (!step || !step.rows || trace.isKernel) return this.#drawChanges(g);
    const slot = this.#slotOf(trace.subject(step));
    const reads = { color: palette.read, width: 2.5, letter: "R", paper: palette.paper };
    const writes = { color: palette.write, width: 2.5, dash: [6, 3], letter: "W", paper: palette.paper };
    if (step.do === "compute" || step.do === "fill") {
      for (const tile of this.operands ?? []) {
        const from = this.#slotOf(tile.name);
        if (from && tile.id !== step.tile) paintFrame(g, this.#box(from, tile.rows, tile.cols), reads);
      }
      if (slot) paintFrame(g, this.#box(slot, step.rows, step.cols), {...writes, letter: "=" });
    } else if (slot) {
      paintFrame(g, this.#box(slot, step.rows, step.cols ?? [0, 1]), step.do === "load" ? reads : writes);
    }
  }

  /** Of a kernel: the rows of HBM that the step changes. */
  #drawChanges(g) {
    for (const change of this.step?.changes ?? []) {
      if (change.tensor === undefined) continue;
      const t = this.trace.tensors[change.tensor], slot = this.#slotOf(t.name);
      const first = (change.first ?? 0) - this.trace.firstElement(t, this.batch, this.head);
      if (!slot || first < 0 || first >= t.rows * t.cols) continue;
      const rows = [Math.floor(first / t.cols), Math.ceil((first + change.values.length) / t.cols)];
      paintFrame(
          g, this.#box(slot, rows, [0, t.cols]),
          { color: this.palette.write, width: 2.5, dash: [6, 3], letter: "W", paper: this.palette.paper });
    }
  }

  /** The tile of S that is being worked on. */
  #drawVisit(g) {
    const { visit, palette } = this, { n_q: nq, n_k: nk } = this.trace.problem;
    if (!visit || visit.row < 0) return;
    const { br, bc } = visit, col = Math.max(0, visit.col);
    const rows = [visit.row * br, Math.min(nq, (visit.row + 1) * br)], cols = [col * bc, Math.min(nk, (col + 1) * bc)];
    for (const name of ["S", "P"]) {
      const slot = this.slots.get(name);
      if (slot && rows[0] < nq && cols[0] < nk)
        paintFrame(g, this.#box(slot, rows, cols), { color: palette.muted, width: 1, dash: [2, 2] });
    }
  }

  /** The chosen row, through all matrices that have one. */
  #drawRow(g) {
    if (this.row === null || this.row >= this.trace.problem.n_q) return;
    g.fillStyle = this.palette.pick;
    for (const slot of this.slots.values()) {
      if (slot.turned) continue;
      const y = slot.y + (this.row + 0.5) * slot.ch;
      g.beginPath();
      g.moveTo(slot.x - 8, y - 4), g.lineTo(slot.x - 2, y), g.lineTo(slot.x - 8, y + 4);
      g.fill();
    }
  }

  #drawSources(g) {
    const pick = { color: this.palette.pick, width: 2 };
    const paint = (cell, style) => {
      const shelved = cell.tile !== undefined && this.shelf.find((b) => b.tile.id === cell.tile);
      const slot = shelved || this.#slotOf(cell.name);
      if (slot) paintFrame(g, this.#box(slot, [cell.i, cell.i + 1], [cell.j, cell.j + 1]), style);
    };
    for (const cell of this.sources ?? []) paint(cell, {...pick, width: 1.5, dash: [3, 2] });
    if (this.cell) paint(this.cell, {...pick, width: 2.5 });
  }
}

/** Calls f(r, from, to) for each stretch of a row whose cells are all so. */
function forEachRun({ rows, cols }, isSo, f) {
  for (let r = 0; r < rows; ++r)
    for (let c = 0; c < cols; ++c) {
      if (!isSo(r, c)) continue;
      const from = c;
      while (c < cols && isSo(r, c)) ++c;
      f(r, from, c);
    }
}
