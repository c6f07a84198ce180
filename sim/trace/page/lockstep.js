// Two traces in lock-step: where the one is in its tile visit, there the other one is in its visit of the same tiles.

const passName = (trace, visit) => (/^backward/.test(trace.chapters[visit.chapter]?.name ?? "") ? "backward" : "forward");

/** Row and column tile of a visit by their middle in rows and keys, so that tiles of other sizes find each other. */
function middleOf(trace, visit) {
  const { br = trace.problem.n_q, bc = trace.problem.n_k } = trace.tiles ?? {};
  return [visit.row < 0 ? -1 : (visit.row + 0.5) * br, visit.col < 0 ? -1 : (visit.col + 0.5) * bc];
}

/** The visit of `other` that has the leader's tiles, in the same pass; of several the one as far into the trace. */
function samePlace(leader, visit, other) {
  const [row, col] = middleOf(leader, visit), pass = passName(leader, visit);
  const { br = other.problem.n_q, bc = other.problem.n_k } = other.tiles ?? {};
  const fits = other.visits.filter((v) => passName(other, v) === pass &&
    (row < 0 ? v.row < 0 : v.row === Math.floor(row / br) && (col < 0 || v.col < 0 || v.col === Math.floor(col / bc))));
  const far = visit.first / leader.length, isNearer = (a, b) => Math.abs(a.first / other.length - far) <= Math.abs(b.first / other.length - far);
  return fits.length ? fits.reduce((a, b) => (isNearer(a, b) ? a : b)) : null;
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
  "HBM read": (c) => c.read + c.rmw, "HBM written": (c) => c.written + c.rmw, "HBM bytes": (c) => c.bytes,
  "SRAM traffic": (c) => c.sram[0] + c.sram[1], "FLOPs in products": (c) => c.flops[0], exp: (c) => c.flops[1],
  "peak SRAM, bytes": (c) => c.peak,
};

/** The counters of both, and the difference. */
function drawDifference(root, views) {
  const [x, y] = views.map((view) => view.replay.at(view.count).counts), [a, b] = views.map((v) => escaped(v.trace.title));
  const difference = (p, q) => (q === p ? "equal" : `<b>${q > p ? "+" : "−"}${grouped(Math.abs(q - p))}</b>`);
  const line = (title, f) => tr(rowHead(title), Object.values(compared).map((of) => td(f(of(x), of(y)))));
  root.innerHTML = tableHtml({
    caption: "Both so far; elements where not bytes. The difference is right minus left.",
    head: Object.keys(compared),
    rows: [line(a, (p) => grouped(p)), line(b, (_, q) => grouped(q)), line("difference", difference)],
  });
}
