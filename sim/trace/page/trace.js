// One recorded trace: what stands in its JSON, and what can be said of it before any step is replayed.

/** O_acc and "P dropped" are drawn and looked up as O and P. */
const baseName = (name) => name.replace(/_acc$| dropped$/, "");

/** Do the rows of this tensor or tile run over keys? All others' run over queries. */
const isOverKeys = (name) => /^d?[KV]$/.test(baseName(name));

/** Does it have a row for each query and a column for each key? */
const isOverBoth = (name) => /^d?[SP]$|^mask$/.test(baseName(name));

class Trace {
  constructor(json) {
    const { n: n_q, nk: n_k } = json.problem;
    Object.assign(this, json, { problem: { n_q, n_k, ...json.problem } });
    this.chapters = json.chapters?.length ? json.chapters : [{ name: "all steps", first: 0 }];
    this.isKernel = json.on === "vgpu";
    for (const tensor of this.tensors) tensor.initial = tensor.values ? decodedAll(tensor.values, json.dtype) : null;
    this.steps.forEach((step, k) => {
      step.index = k;
      if (step.values) step.values = decodedAll(step.values, json.dtype);
      for (const change of step.changes ?? []) change.values = decodedAll(change.values, json.dtype);
    });
    this.#settleHeads();
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

  get length() { return this.steps.length; }

  /** "03 online softmax" */
  get title() { return this.stage.replace(/_/g, " "); }

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

  tensorNamed(name) { return this.tensors.find((t) => t.name === name); }

  lineKey(at) { return `${at[0]}:${at[1]}`; }

  /** May query i see key j? */
  sees(batch, head, i, j) {
    const rows = this.visible?.[batch * this.problem.heads + head] ?? this.visible?.[0];
    return !rows || rows[i]?.[j] !== "0";
  }

  chapterAt(count) { return this.chapters.findLastIndex((c) => c.first < Math.max(count, 1)); }

  /** The CTA of a lane, as text. */
  ctaOf(lane = 0) { return String(this.lanes[lane]?.cta ?? ""); }

  /** Is the chapter of a file of the backward pass? */
  isBackwardAt(count) {
    const chapter = this.chapters[this.chapterAt(count)];
    chapter.isBackward ??= this.#isBackward(chapter);
    return chapter.isBackward;
  }

  #isBackward(chapter) {
    const at = this.steps.slice(chapter.first).find((s) => s.at)?.at;
    return at !== undefined && /backward[.]\w+$/.test(this.files[at[0]].path);
  }

  /** A launch with a worker for each KV head names that head: here it is the first query head of its group. */
  #settleHeads() {
    const { heads, kv_heads: kvHeads } = this.problem, group = heads / kvHeads;
    this.steps.forEach((step, k) => {
      const tensor = this.tensors[step.tensor];
      if (step.first === undefined || tensor.heads !== kvHeads) return;
      const kvHead = Math.floor(step.first / (tensor.rows * tensor.cols)) % kvHeads;
      if (Math.floor(step.head / group) === kvHead) return;
      for (let same = k; this.steps[same]?.tile === step.tile; --same) this.steps[same].head = kvHead * group;
    });
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

  /** Of a kernel: where in the SM a matrix is held in this run. */
  spacesOf(name) {
    const names = { registers: "registers", shared: "shared memory" };
    const takes = (this.taken ??= this.steps.flatMap((s) => s.takes ?? [])).filter((t) => baseName(t.name) === name);
    return Object.keys(names).filter((space) => takes.some((t) => t.space === space)).map((space) => names[space]);
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
      for (const x of values)
        if (Math.abs(x) < 1e30) most = Math.max(most, Math.abs(x));
      scale[baseName(name)] = most;
    };
    for (const t of this.tensors)
      if (t.initial) see(t.name, t.initial);
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
  const { cols: width } = trace.tensors[step.tensor], [r0, r1] = step.rows, [c0, c1] = step.cols;
  let k = 0;
  for (let r = 0; r < r1 - r0; ++r)
    for (let c = 0; c < c1 - c0; ++c) f(step.first + r * width + c, k++);
}

/** The ledger by source line: key → { read, written, runs }; a read-modify-write is both. */
function addToLine(lines, trace, step) {
  if (!step.at) return;
  const key = trace.lineKey(step.at), [read, written, rmw] = step.hbm ?? [0, 0, 0];
  const line = lines.get(key) ?? { read: 0, written: 0, runs: 0 };
  lines.set(key, { read: line.read + read + rmw, written: line.written + written + rmw, runs: line.runs + 1 });
}
