// One recorded trace: what stands in its JSON, and what can be said of it before any step is replayed.

/** O_acc and "P dropped" are drawn and looked up as O and P. */
const baseName = (name) => name.replace(/_acc$| dropped$/, "");

/** Do the rows of this tensor or tile run over keys? All others' run over queries. */
const isOverKeys = (name) => /^d?[KV]$/.test(baseName(name));

/** Does it have a row for each query and a column for each key? */
const isOverBoth = (name) => /^d?[SP]$|^mask$/.test(baseName(name));

class Trace {
  constructor(json) {
    Object.assign(this, json);
    this.chapters = json.chapters?.length ? json.chapters : [{ name: "all steps", first: 0 }];
    this.isKernel = json.on === "vgpu";
    for (const tensor of this.tensors) tensor.initial = tensor.values ? decodedAll(tensor.values, json.dtype) : null;
    this.steps.forEach((step, k) => {
      step.index = k;
      if (step.values) step.values = decodedAll(step.values, json.dtype);
      for (const change of step.changes ?? []) change.values = decodedAll(change.values, json.dtype);
    });
    this.stepsOfLine = this.#findLines();
    this.lastWrite = this.#findLastWrites();
    this.scale = this.#findScales();
    this.lineTotals = this.#sumLines();
    const moving = this.steps.filter((s) => s.tensor !== undefined && s.hbm);
    this.movedTensors = new Set(moving.map((s) => this.tensors[s.tensor].name));
    this.hasSums = this.steps.some((s) => s.hbm?.[2]);
    this.visits = findVisits(this);
    this.visitOf = visitOfEachStep(this);
  }

  get length() {
    return this.steps.length;
  }

  /** "03 online softmax" */
  get title() {
    return this.stage.replace(/_/g, " ");
  }

  /** Where the head's part of a tensor begins, an index into its values: one with the KV heads belongs to a group. */
  firstElement(tensor, batch, head) {
    const { heads, kv_heads: kvHeads, batch: batches } = this.problem;
    const h = tensor.heads === heads ? head : tensor.heads === kvHeads ? Math.floor((head * kvHeads) / heads) : 0;
    const b = tensor.batch === batches ? batch : 0;
    return (b * tensor.heads + h) * tensor.rows * tensor.cols;
  }

  /** Of a step of a program on tiles: the name of what it moves or computes. */
  subject(step) {
    if (step.tensor !== undefined) return this.tensors[step.tensor].name;
    return step.name ?? "";
  }

  tensorNamed(name) {
    return this.tensors.find((t) => t.name === name);
  }

  lineKey(at) {
    return `${at[0]}:${at[1]}`;
  }

  /** May query i see key j? */
  sees(batch, head, i, j) {
    const rows = this.visible?.[batch * this.problem.heads + head] ?? this.visible?.[0];
    return !rows || rows[i]?.[j] !== "0";
  }

  chapterAt(count) {
    return this.chapters.findLastIndex((c) => c.first < Math.max(count, 1));
  }

  isBackwardAt(count) {
    return this.chapters[this.chapterAt(count)]?.name.startsWith("backward") ?? false;
  }

  #findLines() {
    const lines = new Map();
    for (const step of this.steps) {
      if (!step.at) continue;
      const key = this.lineKey(step.at);
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(step.index);
    }
    return lines;
  }

  /** For each element of each tensor the index of the step that writes it last; −1 where none does. */
  #findLastWrites() {
    const last = this.tensors.map((t) => new Int32Array(t.batch * t.heads * t.rows * t.cols).fill(-1));
    for (const step of this.steps) {
      if (step.do === "store" || step.do === "accumulate")
        forEachElement(this, step, (element) => (last[step.tensor][element] = step.index));
      for (const change of step.changes ?? [])
        if (change.tensor !== undefined)
          last[change.tensor].fill(step.index, change.first ?? 0, (change.first ?? 0) + change.values.length);
    }
    return last;
  }

  /** The largest finite magnitude under each name, so that colours mean the same at every step. */
  #findScales() {
    const scale = {};
    const see = (name, values) => {
      let most = scale[baseName(name)] ?? 0;
      for (const x of values) if (Math.abs(x) < 1e30) most = Math.max(most, Math.abs(x));
      scale[baseName(name)] = most;
    };
    for (const t of this.tensors) if (t.initial) see(t.name, t.initial);
    const names = new Map();
    for (const step of this.steps) {
      for (const take of step.takes ?? []) names.set(take.tile, take.name);
      if (step.values && step.name) see(step.name, step.values);
      for (const c of step.changes ?? [])
        see(c.tensor === undefined ? (names.get(c.tile) ?? "") : this.tensors[c.tensor].name, c.values);
    }
    return scale;
  }

  #sumLines() {
    const totals = new Map();
    for (const step of this.steps) addToLine(totals, this, step);
    return totals;
  }
}

/** Calls f(element of the tensor, index in the tile) for what a load, store or accumulate touches. */
function forEachElement(trace, step, f) {
  const tensor = trace.tensors[step.tensor];
  const first = trace.firstElement(tensor, step.batch ?? 0, step.head ?? 0);
  const [r0, r1] = step.rows, [c0, c1] = step.cols ?? [0, tensor.cols];
  let k = 0;
  for (let r = r0; r < r1; ++r) for (let c = c0; c < c1; ++c) f(first + r * tensor.cols + c, k++);
}

/** The ledger by source line: key → { read, written, runs }; a read-modify-write is both. */
function addToLine(lines, trace, step) {
  if (!step.at) return;
  const key = trace.lineKey(step.at), [read, written, rmw] = step.hbm ?? [0, 0, 0];
  const line = lines.get(key) ?? { read: 0, written: 0, runs: 0 };
  lines.set(key, { read: line.read + read + rmw, written: line.written + written + rmw, runs: line.runs + 1 });
}

/**
 * Visits: neighbouring steps that work on the same pair of a row tile and a column tile.
 * @returns {{first: number, end: number, chapter: number, row: number, col: number}[]} row and col count tiles; −1: none
 */
function findVisits(trace) {
  const pairs = trace.isKernel ? pairsOfMarks(trace) : pairsOfTiles(trace);
  const visits = [];
  pairs.forEach((pair, k) => {
    const chapter = trace.chapterAt(k + 1), last = visits.at(-1);
    if (last && last.row === pair[0] && last.col === pair[1] && last.chapter === chapter) last.end = k + 1;
    else visits.push({ first: k, end: k + 1, chapter, row: pair[0], col: pair[1] });
  });
  return visits;
}

/** A tile of S names its pair; loads before it belong to it, and so do computations and stores after it. */
function pairsOfTiles(trace) {
  const br = trace.tiles?.br || trace.problem.n_q || 1, bc = trace.tiles?.bc || trace.problem.n_k || 1;
  const own = trace.steps.map((step) =>
    isOverBoth(trace.subject(step)) && step.cols ? [Math.floor(step.rows[0] / br), Math.floor(step.cols[0] / bc)] : null);
  const pairs = new Array(own.length).fill(null);
  const isPreparation = (step) => step.do === "load" || (step.do === "fill" && !isStored(trace, step));
  for (let k = own.length - 1; k >= 0; --k)
    pairs[k] = own[k] ?? (isPreparation(trace.steps[k]) ? (pairs[k + 1] ?? null) : null);
  for (let k = 0; k < pairs.length; ++k) pairs[k] ??= k > 0 && !startsAnew(trace, k) ? pairs[k - 1] : [-1, -1];
  return pairs;
}

const isStored = (trace, step) => trace.steps[step.index + 1]?.do === "store" && trace.steps[step.index + 1].tile === step.tile;

const startsAnew = (trace, k) =>
  trace.chapters.some((c) => c.first === k) || trace.steps[k].worker !== trace.steps[k - 1].worker;

/** Marks "row tile" and "column tile" name the pair of their CTA, as soon as its first warp sets them. */
function pairsOfMarks(trace) {
  const ctas = new Map();
  return trace.steps.map((step) => {
    const lane = step.lane ?? 0, key = String(trace.lanes[lane]?.cta ?? 0);
    if (!ctas.has(key)) ctas.set(key, { pair: [-1, -1], most: 0, marks: new Map() });
    const cta = ctas.get(key);
    if (step.do !== "mark") return cta.pair;
    const ordinal = (cta.marks.get(lane) ?? 0) + 1;
    cta.marks.set(lane, ordinal);
    if (ordinal <= cta.most) return cta.pair;
    cta.most = ordinal;
    if (/row/.test(step.name)) cta.pair = [step.value ?? 0, cta.pair[1]];
    else if (/col/.test(step.name)) cta.pair = [cta.pair[0], step.value ?? 0];
    return cta.pair;
  });
}

function visitOfEachStep(trace) {
  const of = new Int32Array(trace.length);
  trace.visits.forEach((visit, v) => of.fill(v, visit.first, visit.end));
  return of;
}
