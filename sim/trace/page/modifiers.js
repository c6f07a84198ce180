// Statements that are calls, by the options of a run: what each does to a tile's elements, one after the other.

/** An Operand of f(Term of the element, its query, its key) over a tile. */
function eachOf(tile, f, sym) {
  const x = tileOperand(tile, tile.name);
  const at = (i, j) => f(x.at(i, j), i + tile.rows[0], j + tile.cols[0]);
  return new Operand({...x, at, sym: (i, j) => sym(x.sym(i, j)) });
}

/** The tile's element of a query and a key. */
const elementOf = (tile, i, j) => valueIn(tile, i - tile.rows[0], j - tile.cols[0]);

/** How many steps at this line have changed this tile before, in this execution of the line. */
function turnOf(trace, step) {
  let turn = 0;
  for (let k = step.index - 1; k >= 0; --k) {
    const earlier = trace.steps[k];
    if (!earlier.at || trace.lineKey(earlier.at) !== trace.lineKey(step.at)) break;
    if (earlier.tile === step.tile && earlier.do === "compute") ++turn;
  }
  return turn;
}

function slopeOf(trace, step) {
  if (!trace.problem.alibi) return 0;
  const slopes = trace.tensorNamed("slopes");
  return slopes.initial[trace.firstElement(slopes, step.batch ?? 0, step.head ?? 0)];
}

// ---- mask.apply: softcap, ALiBi, position, explicit mask

function capped({ problem: { softcap: c } }, { before, u }) {
  return eachOf(before, (s) => {
    const v = c * Math.tanh(s.v / c), e = 8 * u * Math.abs(v) + 2 * u * Math.abs(s.v);
    return term(v, e, `${shown(c)}·tanh(${s.n}/${shown(c)})`, s.cells);
  }, (s) => `c·tanh(${s}/c)`);
}

function biased(trace, { step, before, u }) {
  const slope = slopeOf(trace, step);
  return eachOf(before, (s, i, j) => {
    const distance = alibiDistance(trace.problem, i, j), bias = slope * distance, v = s.v - bias;
    return term(v, u * (Math.abs(v) + Math.abs(bias)), `${s.n} − ${shown(slope)}·${distance}`, s.cells, false);
  }, (s) => `${s} − slope·distance`);
}

const hidden = (s, isSeen, why) => term(isSeen ? s.v : -Infinity, 0, `${isSeen ? s.n : "−∞"}: ${why}`, s.cells);

function hiddenByPosition({ problem }, { before }) {
  return eachOf(before, (s, i, j) => {
    const isSeen = seenByPosition(problem, i, j);
    return hidden(s, isSeen, `query ${i} ${isSeen ? "sees" : "does not see"} key ${j}`);
  }, (s) => `${s} where the query sees the key, else −∞`);
}

function hiddenByMask(trace, { before, live }) {
  const mask = live.get("mask");
  return eachOf(before, (s, i, j) => {
    const allowed = elementOf(mask, i, j);
    return hidden(s, allowed !== 0, `the mask is ${shown(allowed)}`);
  }, (s) => `${s} where the mask is not 0, else −∞`);
}

/** Each if asked for, in this order. */
function masked(trace, scope) {
  const { problem } = trace, { rows, cols } = scope.step;
  const rules = [
    problem.softcap > 0 && capped, problem.alibi && biased, !isTileFull(problem, rows, cols) && hiddenByPosition,
    problem.mask && hiddenByMask
  ].filter(Boolean);
  return rules[turnOf(trace, scope.step)]?.(trace, scope) ?? null;
}

// ---- mask.derivative, dropout, round

/** dS through the softcap. */
function throughSoftcap(trace, { step, live, before, u }) {
  const c = trace.problem.softcap, S = live.get("S"), slope = slopeOf(trace, step);
  return eachOf(before, (ds, i, j) => {
    const s = elementOf(S, i, j), cells = [...ds.cells, { tile: S, i: i - S.rows[0], j: j - S.cols[0] }];
    if (s === -Infinity) return term(0, 0, "0: the query does not see the key", cells);
    const bias = slope * alibiDistance(trace.problem, i, j), tanh = (s + bias) / c;
    const e = 8 * u * Math.abs(ds.v) * (1 + (Math.abs(s) + Math.abs(bias)) / c);
    return term(ds.v * (1 - tanh * tanh), e, `${bracketed(ds)}·(1 − (${shown(tanh)})²)`, cells);
  }, (s) => `${s}·(1 − tanh²)`);
}

/** Entries go by their position, others grow. */
function dropped({ problem }, { step, before, u }) {
  const p = problem.dropout, kept = 1 / (1 - p), { batch = 0, head = 0 } = step;
  return eachOf(before, (x, i, j) => {
    if (dropoutWord(problem.dropout_seed, batch, head, i, j) < p * 2 ** 32) return term(0, 0, "0: dropped", x.cells);
    const v = x.v * kept;
    return term(v, 4 * u * Math.abs(v), `${bracketed(x)}·${shown(kept)}`, x.cells);
  }, (s) => `${s} / (1 − p) where kept, else 0`);
}

/** As the matrix unit takes it. */
function rounded({ dtype }, { before }) {
  const half = { fp16: 2 ** -11, bf16: 2 ** -8 }[dtype] ?? 0, smallest = half && 2 ** -25;
  return eachOf(before, (x) => term(x.v, half * Math.abs(x.v) + smallest, `${x.n} rounded to ${dtype}`, x.cells),
                (s) => `${s} rounded to ${dtype}`);
}

/** dropped(P, …): P is rounded; with dropout copied, dropped and the copy rounded. */
function droppedCopy(trace, scope) {
  if (scope.step.name === "P") return rounded(trace, scope);
  const turn = turnOf(trace, scope.step);
  if (turn === 0) return tileOperand(scope.live.get("P"), "P");
  return turn === 1 ? dropped(trace, scope) : rounded(trace, scope);
}

/** By the function's name in the source. */
const modifiers = {
  apply: masked, derivative: throughSoftcap, dropout: dropped, round: rounded, dropped: droppedCopy,
};
