// Tile visits: the stretches of a trace that work on one tile of S.

/**
 * Visits: neighbouring steps that work on the same pair of a row tile and a column tile.
 * @returns {{first, end, chapter, row, col, br, bc}[]} row and col count tiles, −1: none; br, bc are the tiles' sizes
 */
function findVisits(trace) {
  const pairs = trace.isKernel ? pairsOfMarks(trace) : pairsOfTiles(trace);
  const visits = [], sizes = tileSizes(trace);
  pairs.forEach((pair, k) => {
    const chapter = trace.chapterAt(k + 1), last = visits.at(-1);
    if (last && last.row === pair[0] && last.col === pair[1] && last.chapter === chapter)
      Object.assign(last, { end: k + 1, ...sizes[k] });
    else
      visits.push({ first: k, end: k + 1, chapter, row: pair[0], col: pair[1], ...sizes[k] });
  });
  return visits;
}

/** A tile of S names its pair; loads before it belong to it, and so do computations and stores after it. */
function pairsOfTiles(trace) {
  const { br = trace.problem.n_q || 1, bc = trace.problem.n_k || 1 } = trace.tiles ?? {};
  const own = trace.steps.map(
      (step) => isOverBoth(trace.subject(step)) && step.cols ?
          [Math.floor(step.rows[0] / br), Math.floor(step.cols[0] / bc)] :
          null);
  const pairs = new Array(own.length).fill(null);
  const isPreparation = (step) => step.do === "load" || (step.do === "fill" && !isStored(trace, step));
  for (let k = own.length - 1; k >= 0; --k)
    pairs[k] = own[k] ?? (isPreparation(trace.steps[k]) ? (pairs[k + 1] ?? null) : null);
  for (let k = 0; k < pairs.length; ++k) pairs[k] ??= k > 0 && !startsAnew(trace, k) ? pairs[k - 1] : [-1, -1];
  return pairs;
}

const isStored = (trace, step) =>
    trace.steps[step.index + 1]?.do === "store" && trace.steps[step.index + 1].tile === step.tile;

const startsAnew = (trace, k) =>
    trace.chapters.some((c) => c.first === k) || trace.steps[k].worker !== trace.steps[k - 1].worker;

/** Marks "row tile" and "column tile" name the pair of their CTA, as soon as its first warp sets them. */
function pairsOfMarks(trace) {
  let ctas = new Map();
  return trace.steps.map((step) => {
    if (trace.chapters.some((c) => c.first === step.index)) ctas = new Map();  // another kernel
    const key = trace.ctaOf(step.lane), cta = ctas.get(key) ?? { pair: [-1, -1], most: 0, marks: new Map() };
    ctas.set(key, cta);
    if (step.do === "mark") setMark(cta, step);
    return cta.pair;
  });
}

function setMark(cta, { lane, name, value = 0 }) {
  const ordinal = (cta.marks.get(lane) ?? 0) + 1;
  cta.marks.set(lane, ordinal);
  if (ordinal <= cta.most) return;  // another warp was here before
  cta.most = ordinal;
  if (/row/.test(name)) cta.pair = [value, cta.pair[1]];
  if (/col/.test(name)) cta.pair = [cta.pair[0], value];
}

/** Of a kernel: its tiles of Q and K in shared memory say how large tiles are, from the step on that takes them. */
function tileSizes(trace) {
  let { br = trace.problem.n_q, bc = trace.problem.n_k } = trace.tiles ?? {};
  return trace.steps.map((step) => {
    for (const { name, rows, space } of step.takes ?? []) {
      if (space === "shared" && name === "Q") br = rows[1];
      if (space === "shared" && name === "K") bc = rows[1];
    }
    return { br, bc };
  });
}

function visitOfEachStep(trace) {
  const of = new Int32Array(trace.length);
  trace.visits.forEach((visit, v) => of.fill(v, visit.first, visit.end));
  return of;
}
