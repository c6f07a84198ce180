// Where each matrix lies in the attention picture:
//
//            Kᵀ   Vᵀ                   a key is a column of S and of P,
//       Q    S    P    O   l m …       a query a row of all of them
//      dQ    dS   dP   dO  D …         (backward)
//            dKᵀ  dVᵀ

const places = {
  K: { band: 0, column: 1, turned: true }, V: { band: 0, column: 2, turned: true },
  Q: { band: 1, column: 0 }, S: { band: 1, column: 1 }, P: { band: 1, column: 2 }, O: { band: 1, column: 3 },
  dQ: { band: 2, column: 0 }, dS: { band: 2, column: 1 }, dP: { band: 2, column: 2 }, dO: { band: 2, column: 3 },
  dK: { band: 3, column: 1, turned: true }, dV: { band: 3, column: 2, turned: true },
};

/** Names of the columns beside O: what has one number for each query, in the forward or in the backward pass. */
function columnNames(trace, isBackward) {
  const names = [];
  const see = (name, rows, cols) => {
    if (cols === 1 && rows > 0 && !places[baseName(name)] && !["slopes", "mask"].includes(name) && !names.includes(name)) names.push(name);
  };
  for (const t of trace.tensors) if (t.rows === trace.problem.n_q && t.role !== "input") see(t.name, t.rows, t.cols);
  if (trace.isKernel) return names;
  for (const step of trace.steps) {
    if (!!trace.isBackwardAt(step.index + 1) !== isBackward) continue;
    for (const take of step.takes ?? []) if (take.rows && take.cols) see(take.name, take.rows[1] - take.rows[0], take.cols[1] - take.cols[0]);
  }
  return names;
}

const gap = 26, labelHeight = 15, stripe = { min: 12, max: 46, gap: 15 };

/**
 * @param withGradients the lower two bands, too
 * @returns {Map<string, {name, x, y, w, h, rows, cols, cw, ch, turned}>} cells are cw × ch; rows, cols as drawn
 */
function laidOut(trace, width, height, withGradients) {
  const { n_q: nq, n_k: nk, d, dv = d } = trace.problem;
  const columns = (trace.columnNames ??= [columnNames(trace, false), columnNames(trace, true)])[withGradients ? 1 : 0];
  const inBackward = (name) => /^D$/.test(name);
  const bands = withGradients ? 4 : 2;
  const heights = [Math.max(d, dv), nq, nq, Math.max(d, dv)].slice(0, bands);
  const isOverQueries = [false, true, true, false];
  const stripes = columns.length;
  const { n, c } = cellSizes(width - 4 * gap, height - bands * (labelHeight + 8), nk, d + dv, nq * (bands / 2), Math.max(d, dv) * (bands / 2), stripes);
  const stripeWidth = Math.max(stripe.min, Math.min(stripe.max, n));

  const x = [], y = [];
  let left = 4;
  for (const w of [d * c, nk * n, nk * n, dv * c]) x.push(left), (left += w + gap);
  let top = labelHeight;
  heights.forEach((h, band) => {
    y.push(top);
    top += h * (isOverQueries[band] ? n : c) + labelHeight + 8;
  });

  const slots = new Map();
  for (const [name, place] of Object.entries(places)) {
    if (place.band >= bands) continue;
    const feature = /[QK]$/.test(name) ? d : dv;
    const rows = place.turned ? feature : nq, cols = place.turned || place.column === 1 || place.column === 2 ? nk : feature;
    const cw = cols === feature && !place.turned && place.column % 3 === 0 ? c : n, ch = place.turned ? c : n;
    slots.set(name, { name, x: x[place.column], y: y[place.band], w: cols * cw, h: rows * ch, rows, cols, cw, ch, turned: !!place.turned });
  }
  columns.forEach((name, k) => {
    const band = withGradients && inBackward(name) ? 2 : 1;
    slots.set(name, { name, x: left - gap + 14 + k * (stripeWidth + stripe.gap), y: y[band], w: stripeWidth, h: nq * n, rows: nq, cols: 1,
                      cw: stripeWidth, ch: n, turned: false, isColumn: true });
  });
  return slots;
}

/** The largest cells that fit: n along queries and keys, c along channels. */
function cellSizes(width, height, nk, channels, rows, channelRows, stripes) {
  for (let n = 46; n > 0.5; n -= n > 6 ? 1 : 0.25) {
    const forChannels = Math.min(
      (width - 2 * nk * n - stripes * (Math.max(stripe.min, Math.min(stripe.max, n)) + stripe.gap)) / channels,
      (height - rows * n) / channelRows);
    const c = Math.min(forChannels, Math.max(n, 6));
    if (c >= Math.min(n, Math.max(1, (channels <= 16 ? 0.85 : 0.4) * n))) return { n, c: c > 6 ? Math.floor(c) : c };
  }
  return { n: 0.5, c: 0.5 };
}
