// Where each matrix lies in the attention picture:
//
//            Kᵀ   Vᵀ                   a key is a column of S and of P,
//       Q    S    P    O   l m …       a query a row of all of them
//      dQ    dS   dP   dO  D …         (backward)
//            dKᵀ  dVᵀ

const places = {
  K: { band: 0, column: 1, turned: true },
  V: { band: 0, column: 2, turned: true },
  Q: { band: 1, column: 0 },
  S: { band: 1, column: 1 },
  P: { band: 1, column: 2 },
  O: { band: 1, column: 3 },
  dQ: { band: 2, column: 0 },
  dS: { band: 2, column: 1 },
  dP: { band: 2, column: 2 },
  dO: { band: 2, column: 3 },
  dK: { band: 3, column: 1, turned: true },
  dV: { band: 3, column: 2, turned: true },
};

/** Names of the columns beside O: what has one number for each query, in the forward or in the backward pass. */
function columnNames(trace, isBackward) {
  const names = [];
  const see = (name, rows, cols) => {
    if (cols === 1 && rows > 0 && !places[baseName(name)] && !["slopes", "mask", "turn", "partial_LSE"].includes(name) &&
        !names.includes(name))
      names.push(name);
  };
  for (const t of trace.tensors)
    if (t.rows === trace.problem.n_q && t.role !== "input") see(t.name, t.rows, t.cols);
  if (trace.isKernel) return names;
  for (const step of trace.steps) {
    if (trace.isBackwardAt(step.index + 1) !== isBackward) continue;
    for (const take of step.takes ?? [])
      if (take.rows && take.cols) see(take.name, take.rows[1] - take.rows[0], take.cols[1] - take.cols[0]);
  }
  return names;
}

const labelHeight = 15, stripe = { min: 12, max: 46, gap: 15 };

/**
 * @param withGradients the lower two bands, too
 * @returns {Map<string, {name, x, y, w, h, rows, cols, cw, ch, turned}>} cells are cw × ch; rows, cols as drawn
 */
function laidOut(trace, width, height, withGradients) {
  const { n_q: nq, n_k: nk, d, dv } = trace.problem, bands = withGradients ? 4 : 2, gap = width < 480 ? 14 : 26;
  const columns = (trace.columnNames ??= [columnNames(trace, false), columnNames(trace, true)])[withGradients ? 1 : 0];
  const { n, c, stripeWidth } = cellSizes(
      { width: width - 4 * gap, height: height - bands * (labelHeight + 8), nk, channels: d + dv,
        rows: nq * bands / 2, channelRows: Math.max(d, dv) * bands / 2, stripes: columns.length });

  const x = startsOf([d * c, nk * n, nk * n, dv * c], 4, gap), channels = Math.max(d, dv) * c;
  const y = startsOf([channels, nq * n, nq * n, channels], labelHeight, labelHeight + 8);
  const slots = new Map();
  const add = (name, left, top, [rows, ch], [cols, cw], turned = false, isColumn = false) =>
      slots.set(name, { name, x: left, y: top, w: cols * cw, h: rows * ch, rows, cols, cw, ch, turned, isColumn });
  for (const [name, { band, column, turned }] of Object.entries(places)) {
    if (band >= bands) continue;
    const feature = [/[QK]$/.test(name) ? d : dv, c], isSquare = column === 1 || column === 2;
    add(name, x[column], y[band], turned ? feature : [nq, n], isSquare ? [nk, n] : feature, turned);
  }
  columns.forEach((name, k) => {
    const left = x[4] - gap + 14 + k * (stripeWidth + stripe.gap), band = withGradients && name === "D" ? 2 : 1;
    add(name, left, y[band], [nq, n], [1, stripeWidth], false, true);
  });
  return slots;
}

/** Where parts of these sizes begin, one after the other; and where the last one ends, with the space behind it. */
function startsOf(sizes, first, space) {
  const starts = [first];
  for (const size of sizes) starts.push(starts.at(-1) + size + space);
  return starts;
}

/** The largest cells that fit: n along queries and keys, c along channels. */
function cellSizes({ width, height, nk, channels, rows, channelRows, stripes }) {
  const least = channels <= 16 ? 0.85 : 0.4, smallest = 0.1;  // c of n; n
  for (let n = 46; n > smallest; n -= n > 6 ? 1 : n > 1 ? 0.25 : 0.05) {
    const stripeWidth = Math.max(stripe.min, Math.min(stripe.max, n));
    const across = (width - 2 * nk * n - stripes * (stripeWidth + stripe.gap)) / channels;
    const c = Math.min(across, (height - rows * n) / channelRows, Math.max(n, 6));
    if (c >= Math.min(n, Math.max(1, least * n)) && c > 0) return { n, c: c > 6 ? Math.floor(c) : c, stripeWidth };
  }
  return { n: smallest, c: smallest, stripeWidth: stripe.min };
}
