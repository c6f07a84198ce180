// The state of HBM, SRAM and the counters after any number of steps, by replaying them.

/** What lies where after `count` steps. Arrays of tiles are replaced, never changed, so that copies may share them. */
class State {
  constructor(fields) { Object.assign(this, fields); }

  /** Before the first step: the inputs are in HBM, SRAM is empty. */
  static first(trace) {
    const nothing = () => ({ read: 0, written: 0, rmw: 0, bytes: 0 });
    return new State({
      count: 0,
      tensors: trace.tensors.map((t) => {
        const size = t.batch * t.heads * t.rows * t.cols;
        return {
          values: t.initial?.slice() ?? new Float64Array(size),
          written: new Uint8Array(size).fill(t.initial ? 1 : 0)
        };
      }),
      /** @type {Map<number, object>} id → { id, name, rows, cols, values or null, batch, head, space, … } */
      tiles: new Map(),
      /** Parts of S, P, … that were in SRAM and are no more: "name batch head rows cols" → { name, rows, cols, … } */
      gone: new Map(),
      counts: {...nothing(), sram: [0, 0], flops: [0, 0, 0], held: 0, peak: 0 },
      ofTensor: trace.tensors.map(nothing),
      lines: new Map(),
    });
  }

  copy() {
    return new State({
      count: this.count,
      tensors: this.tensors.map((t) => ({ values: t.values.slice(), written: t.written.slice() })),
      tiles: new Map([...this.tiles].map(([id, tile]) => [id, {...tile }])),
      gone: new Map(this.gone),
      counts: {...this.counts, sram: [...this.counts.sram], flops: [...this.counts.flops] },
      ofTensor: this.ofTensor.map((t) => ({...t })),
      lines: new Map(this.lines),
    });
  }

  apply(trace, step) {
    for (const id of step.releases ?? []) this.#release(id);
    for (const take of step.takes ?? []) this.#take(take, step);
    this.#act(trace, step);
    for (const change of step.changes ?? []) this.#change(change, step);
    this.#count(trace, step);
    addToLine(this.lines, trace, step);
    ++this.count;
  }

  #release(id) {
    const tile = this.tiles.get(id);
    if (tile?.values && tile.space === "sram" && isOverBoth(tile.name)) this.#goes(tile);
    this.tiles.delete(id);
  }

  /** A tile is given back or renamed: what was in it is in SRAM no more. */
  #goes({ name, batch, head, rows, cols }) {
    this.gone.set(
        [baseName(name), batch, head, rows, cols].join(" "), { name: baseName(name), batch, head, rows, cols });
  }

  #take(take, step) {
    this.tiles.set(take.tile, {
      rows: [0, 0],
      cols: [0, 1],
      space: "sram",
      ...take,
      id: take.tile,
      values: null,
      since: step.index,
      worker: step.worker ?? 0,
      batch: step.batch ?? 0,
      head: step.head ?? 0,
      lane: take.lane ?? step.lane
    });
  }

  #act(trace, step) {
    const tile = this.tiles.get(step.tile);
    if (step.do === "load") {
      const values = new Float64Array(size(step));
      forEachElement(trace, step, (element, k) => (values[k] = this.tensors[step.tensor].values[element]));
      if (tile) Object.assign(tile, { values, since: step.index, rows: step.rows, cols: step.cols });
    } else if (step.do === "store" || step.do === "accumulate") {
      const sum = trace.dtype === "fp64" ? Number : Math.fround;
      const { values, written } = this.tensors[step.tensor], from = step.values ?? tile?.values;
      forEachElement(trace, step, (element, k) => {
        values[element] = step.do === "store" || step.values ? from[k] : sum(values[element] + from[k]);
        written[element] = 1;
      });
    } else if (tile && step.values) {
      if (tile.name !== step.name && tile.values && isOverBoth(tile.name)) this.#goes(tile);
      Object.assign(tile, {
        name: step.name ?? tile.name,
        rows: step.rows ?? tile.rows,
        cols: step.cols ?? tile.cols,
        values: step.values,
        since: step.index
      });
      this.gone.delete([baseName(tile.name), tile.batch, tile.head, tile.rows, tile.cols].join(" "));
    }
  }

  /** Of a kernel: some elements of a tile or tensor are new, and thereby known. */
  #change({ tensor, tile: id, first = 0, values }, step) {
    if (tensor !== undefined) {
      this.tensors[tensor].values.set(values, first);
      this.tensors[tensor].written.fill(1, first, first + values.length);
      return;
    }
    const tile = this.tiles.get(id), all = new Float64Array(size(tile)), known = new Uint8Array(all.length);
    if (tile.values) all.set(tile.values), known.set(tile.known);
    all.set(values, first);
    known.fill(1, first, first + values.length);
    Object.assign(tile, { values: all, known, since: step.index });
  }

  #count(trace, step) {
    const c = this.counts, [read, written, rmw] = step.hbm ?? [0, 0, 0], bytes = step.hbm_bytes ?? 0;
    for (const of of step.tensor === undefined ? [c] : [c, this.ofTensor[step.tensor]]) {
      of.read += read, of.written += written, of.rmw += rmw, of.bytes += bytes;
    }
    (step.sram ?? []).forEach((n, k) => (c.sram[k] += n));
    (step.flops ?? []).forEach((n, k) => (c.flops[k] += n));
    c.held = this.holders(trace, step).reduce((sum, tile) => sum + tile.bytes, 0);
    c.peak = Math.max(c.peak, c.held);
  }

  /** The tiles in the SRAM of the step's worker; of a kernel, in its CTA's shared memory. */
  holders(trace, step) {
    return [...this.tiles.values()].filter(
        (t) => t.space !== "registers" &&
            (trace.isKernel ? trace.ctaOf(t.lane) === trace.ctaOf(step?.lane) : t.worker === (step?.worker ?? 0)));
  }

  /** A short text that two states share only if they are equal in all that is shown. */
  digest() {
    let hash = 0x811c9dc5;
    const bits = new DataView(new ArrayBuffer(8));
    const word = (w) => (hash = Math.imul(hash ^ w, 0x01000193) >>> 0);
    const number = (x) => (bits.setFloat64(0, x), word(bits.getInt32(0)), word(bits.getInt32(4)));
    const text = (s) => [...s].forEach((c) => word(c.charCodeAt(0)));
    for (const { values, written } of this.tensors) values.forEach((x, k) => (number(x), word(written[k])));
    for (const tile of this.tiles.values()) {
      text(JSON.stringify([tile.id, tile.name, tile.rows, tile.cols, tile.since]));
      tile.values?.forEach(number);
      tile.known?.forEach(word);
    }
    text(JSON.stringify([this.count, [...this.gone.keys()].sort(), this.counts, this.ofTensor, [...this.lines]]));
    return hash.toString(16).padStart(8, "0");
  }
}

const size = ({ rows, cols }) => (rows[1] - rows[0]) * ((cols ?? [0, 1])[1] - (cols ?? [0, 1])[0]);

/** What a tile holds in its own row and column; undefined where that is not known. */
function valueIn(tile, i, j) {
  const k = i * (tile.cols[1] - tile.cols[0]) + j;
  return tile.values && (!tile.known || tile.known[k]) ? tile.values[k] : undefined;
}

/** States by step count. Saves one now and then, so that going back is cheap. */
class Replay {
  constructor(trace, saved) {
    this.trace = trace;
    this.saved = saved ?? new Map([[0, State.first(trace)]]);
    this.every = Math.max(8, Math.ceil(trace.length / 64));
    this.state = this.saved.get(0).copy();
  }

  /** @returns {State} after `count` steps; good until the next call, not to be changed */
  at(count) {
    if (count < this.state.count || this.#nearest(count) > this.state.count)
      this.state = this.saved.get(this.#nearest(count)).copy();
    while (this.state.count < count) {
      this.state.apply(this.trace, this.trace.steps[this.state.count]);
      if (this.state.count % this.every === 0 && !this.saved.has(this.state.count))
        this.saved.set(this.state.count, this.state.copy());
    }
    return this.state;
  }

  #nearest(count) {
    let k = Math.floor(count / this.every) * this.every;
    while (!this.saved.has(k)) k -= this.every;
    return k;
  }
}
