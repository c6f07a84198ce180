// Two traces in lock-step: where the one is in its tile visit, there the other one is in its visit of the same tiles.

const isBackward = (trace, visit) => trace.isBackwardAt(visit.first + 1);

/** Does the visit hold the middle of the other one's tile? Tiles of other sizes find each other so. */
function holdsMiddle(visit, of) {
  const holds = (tile, size, otherTile, otherSize) =>
      tile < 0 || otherTile < 0 ? tile === otherTile : tile === Math.floor((otherTile + 0.5) * otherSize / size);
  const col = visit.col < 0 || of.col < 0 || holds(visit.col, visit.bc, of.col, of.bc);
  return holds(visit.row, visit.br, of.row, of.br) && col;
}

/** The visit of `other` that has the leader's tiles, in the same pass; of several the one as far into the trace. */
function samePlace(leader, visit, other) {
  const pass = isBackward(leader, visit), far = visit.first / leader.length;
  const fits = other.visits.filter((v) => isBackward(other, v) === pass && holdsMiddle(v, visit));
  const distance = (v) => Math.abs(v.first / other.length - far);
  return fits.length ? fits.reduce((a, b) => (distance(b) < distance(a) ? b : a)) : null;
}

/** The step count of `other` that belongs to the leader's `count`. */
function partnerCount(leader, count, other) {
  if (count === 0) return 0;
  if (count === leader.length) return other.length;
  const visit = leader.visits[leader.visitOf[count - 1]], there = samePlace(leader, visit, other);
  if (!there) return Math.round((count / leader.length) * other.length);
  const share = (count - visit.first) / (visit.end - visit.first);
  return there.first + Math.max(1, Math.round(share * (there.end - there.first)));
}

const compared = {
  "HBM read": (c) => c.read + c.rmw,
  "HBM written": (c) => c.written + c.rmw,
  "HBM bytes": (c) => c.bytes,
  "SRAM traffic": (c) => c.sram[0] + c.sram[1],
  "FLOPs in products": (c) => c.flops[0],
  exp: (c) => c.flops[1],
  "peak SRAM, bytes": (c) => c.peak,
};

/** What a trace of a kernel does not hold. */
const ofStagesOnly = ["SRAM traffic", "FLOPs in products", "exp"];

/** The counters of both, and the difference. */
function drawDifference(root, views) {
  const [x, y] = views.map((view) => view.replay.at(view.count).counts);
  const [a, b] = views.map((view) => escaped(view.trace.title)), hasKernel = views.some((view) => view.trace.isKernel);
  const names = Object.keys(compared).filter((name) => !hasKernel || !ofStagesOnly.includes(name));
  const difference = (p, q) => (q === p ? "equal" : `<b>${q > p ? "+" : "−"}${grouped(Math.abs(q - p))}</b>`);
  const line = (title, f) => tr(rowHead(title), names.map((name) => td(f(compared[name](x), compared[name](y)))));
  root.innerHTML = tableHtml({
    caption: "Both up to now; elements where not bytes. The difference is right minus left.",
    head: names,
    rows: [line(a, (p) => grouped(p)), line(b, (_, q) => grouped(q)), line("difference", difference)],
  });
}
