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
    for (const slot of this.slots.values())
      if (this.#isNeverInHbm(slot)) this.#drawWhere(g, slot);
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
      hbm: this.#hbm(name)?.value(i, j),
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

  /** What the tensors of a slot hold, the accumulator's last: value(i, j), undefined if unwritten; isFinal(i, j). */
  #hbm(name) {
    const { trace, state, batch, head } = this;
    const [own, sums] = [name, `${name}_acc`].map((n) => trace.tensors.findIndex((t) => t.name === n));
    const layers = [own, sums].filter((k) => k >= 0).map((k) => {
      const t = trace.tensors[k], first = trace.firstElement(t, batch, head);
      return { k, at: (i, j) => first + i * t.cols + j, ...state.tensors[k] };
    });
    if (!layers.length) return null;
    const top = (i, j) => layers.find(({ at, written }) => written[at(i, j)]);
    const value = (i, j) => {
      const layer = top(i, j);
      return layer && layer.values[layer.at(i, j)];
    };
    const isFinal = (i, j) => {
      const layer = top(i, j);
      return layer?.k === own && trace.lastWrite[own][layer.at(i, j)] < state.count;
    };
    return { value, isFinal };
  }

  #drawSlot(g, slot) {
    const { palette, trace } = this, scale = trace.scale[slot.name] ?? 0, hbm = this.#hbm(slot.name);
    const tiles = this.tilesOfSlot.get(slot.name) ?? [];
    const at = (r, c) => (slot.turned ? [c, r] : [r, c]);
    const inTile = (i, j) => tiles.find((t) => t.values && contains(t.rows, i) && contains(t.cols, j));
    const value = (r, c) => {
      const [i, j] = at(r, c), tile = inTile(i, j);
      return tile ? valueIn(tile, i - tile.rows[0], j - tile.cols[0]) : hbm?.value(i, j);
    };
    this.#drawLabel(g, slot);
    g.fillStyle = `rgb(${palette.empty})`;
    g.fillRect(slot.x, slot.y, slot.w, slot.h);
    g.fillStyle = palette.hatches.empty;
    if (!this.#isNeverInHbm(slot)) g.fillRect(slot.x, slot.y, slot.w, slot.h);
    this.#drawGone(g, slot, hbm);
    paintCells(g, slot, value, palette, scale);
    paintGrid(g, slot, palette.line);
    this.#drawStale(g, slot, hbm, inTile, at);
    if (isOverBoth(slot.name)) this.#drawMasked(g, slot);
    paintNumbers(g, slot, value, palette, scale);
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
    const [name, suffix] = slot.name.replace(/^alpha$/, "α").split("_"), middle = slot.x + slot.w / 2;
    g.fillText(name, middle, slot.y - (suffix ? 15 : 5));
    g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    if (suffix) g.fillText(suffix, middle, slot.y - 5);
  }

  /** Parts that were in SRAM, are there no more and never went to HBM. */
  #drawGone(g, slot, hbm) {
    for (const part of this.state.gone.values()) {
      if (part.name !== slot.name || part.batch !== this.batch || part.head !== this.head) continue;
      if (hbm?.value(part.rows[0], part.cols[0]) !== undefined) continue;
      const box = this.#box(slot, part.rows, part.cols);
      g.fillStyle = this.palette.hatches.gone;
      g.fillRect(box.x, box.y, box.w, box.h);
    }
  }

  /** S and P of most kernels. */
  #isNeverInHbm({ name }) { return this.trace.isKernel && !this.#hbm(name); }

  /** Where a matrix is that is never in HBM: the longest words that there is room for. */
  #drawWhere(g, slot) {
    g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    const where = this.trace.spacesOf(slot.name).join(", "), words = ["never in HBM"];
    if (where) words.unshift(`in ${where}, never in HBM`, `in ${where}`);
    const text = words.find((t) => g.measureText(t).width < slot.w - 6);
    if (!text || slot.h < 12) return;
    const x = slot.x + slot.w / 2, y = slot.y + slot.h / 2, w = g.measureText(text).width + 4;
    g.fillStyle = this.palette.paper;
    g.fillRect(x - w / 2, y - 6, w, 12);
    g.fillStyle = this.palette.ink;
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.fillText(text, x, y);
  }

  /** HBM that will be written again. */
  #drawStale(g, slot, hbm, inTile, at) {
    if (!hbm || this.#isInput(slot.name)) return;
    g.fillStyle = this.palette.hatches.stale;
    forEachRun(slot, (r, c) => {
      const [i, j] = at(r, c);
      return !inTile(i, j) && hbm.value(i, j) !== undefined && !hbm.isFinal(i, j);
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
    const reads = { color: palette.read, width: 2.5, letter: "R", paper: palette.paper }, writes = written(palette);
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

  /** Of a kernel: around what the step changes in HBM; where its parts are too thin, one frame around all. */
  #drawChanges(g) {
    const changes = (this.step?.changes ?? []).filter((c) => c.tensor !== undefined);
    for (const k of new Set(changes.map((c) => c.tensor))) {
      const t = this.trace.tensors[k], slot = this.#slotOf(t.name);
      const parts = changedParts(
          changes.filter((c) => c.tensor === k), t, this.trace.firstElement(t, this.batch, this.head));
      if (!slot || !parts.length) continue;
      const isThin = parts.some(({ rows: [from, to] }) => (to - from) * slot.ch < 8);
      (isThin ? [around(parts)] : parts).forEach(({ rows, cols }, n) => {
        const style = written(this.palette);
        paintFrame(g, this.#box(slot, rows, cols), n ? {...style, letter: "" } : style);
      });
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

/** The frame of what is written now. */
const written = (palette) => ({ color: palette.write, width: 2.5, dash: [6, 3], letter: "W", paper: palette.paper });

/** Stretches of a tensor's elements as rows and columns of the head that begins at `first`. */
function changedParts(changes, { rows, cols }, first) {
  const parts = [];
  for (const c of changes) {
    const from = (c.first ?? 0) - first, end = from + c.values.length;
    if (from < 0 || end > rows * cols) continue;
    for (let row = Math.floor(from / cols); row * cols < end; ++row) {
      const columns = [Math.max(0, from - row * cols), Math.min(cols, end - row * cols)], last = parts.at(-1);
      if (last?.rows[1] === row && String(last.cols) === String(columns))
        last.rows[1] = row + 1;
      else
        parts.push({ rows: [row, row + 1], cols: columns });
    }
  }
  return parts;
}

function around(parts) {
  const range = (of) => [Math.min(...parts.map((p) => of(p)[0])), Math.max(...parts.map((p) => of(p)[1]))];
  return { rows: range((p) => p.rows), cols: range((p) => p.cols) };
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
