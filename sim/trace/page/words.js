// A step in one sentence, for the line under the picture and for screen readers.

const plural = (n, one) => `${grouped(n)} ${one}${n === 1 ? "" : "s"}`;

function partShown(trace, step) {
  const tensor = step.tensor === undefined ? null : trace.tensors[step.tensor];
  const rows = step.rows ? ` rows ${rangeShown(step.rows)}` : "";
  const isPart =
      step.cols && (isOverBoth(trace.subject(step)) || (tensor && step.cols[1] - step.cols[0] < tensor.cols));
  return `${trace.subject(step)}${rows}${isPart ? `, columns ${rangeShown(step.cols)}` : ""}`;
}

function workShown([matmul = 0, exps = 0, others = 0] = []) {
  const parts = [
    matmul && plural(matmul, "FLOP") + " in a product", exps && plural(exps, "exp"),
    others && plural(others, "other operation")
  ];
  return parts.filter(Boolean).join(", ");
}

/** "load K rows 4–7: 32 elements from HBM" */
function stepInWords(trace, step) {
  const [read = 0, written = 0, rmw = 0] = step.hbm ?? [];
  switch (step.do) {
    case "load":
      return `load ${partShown(trace, step)}: ${plural(read, "element")} from HBM`;
    case "store":
      return `store ${partShown(trace, step)}: ${plural(written, "element")} to HBM`;
    case "accumulate":
      return `add to ${partShown(trace, step)} in HBM: ${plural(rmw, "element")} read and written`;
    case "fill":
      return `set ${partShown(trace, step)} in SRAM to ${shown(step.values?.[0] ?? NaN)}`;
    case "compute": {
      const work = workShown(step.flops);
      return `compute ${partShown(trace, step)}${work && `: ${work}`}`;
    }
  }
  const lane = trace.lanes[step.lane ?? 0] ?? { warp: 0 };
  const of = step.tensor === undefined ? "" : ` of ${trace.subject(step)}`;
  const moved = [
    read && `${plural(read, "element")}${of} from HBM`, written && `${plural(written, "element")}${of} to HBM`,
    rmw && `${plural(rmw, "element")}${of} added in HBM`
  ].filter(Boolean).join(", ");
  const what = {
    mark: `${step.name} ${step.value ?? 0} begins`,
    barrier: `arrives at ${step.name}`,
    wait: `waits: ${step.name}`
  }[step.do] ??
      `${step.name}${step.times > 1 ? `, ${plural(step.times, "time")}` : ""}`;
  return `warp ${lane.warp}: ${what}${moved && `: ${moved}`}`;
}

/** "tile 1, 0", and where several passes visit it the banner of its first computation. */
function visitInWords(trace, visit) {
  const name = `tile ${visit.row}${visit.col >= 0 ? `, ${visit.col}` : ""}`;
  const isSame = (v) => v.row === visit.row && v.col === visit.col && v.chapter === visit.chapter;
  if (trace.isKernel || trace.visits.filter(isSame).length < 2) return name;
  const work = trace.steps.slice(visit.first, visit.end).find((s) => s.do === "compute");
  return work?.banner ? `${name}: ${work.banner}` : name;
}

/** "Step 57 of 310: load K rows 4–7: 32 elements from HBM" */
function positionInWords(trace, count) {
  const at = `Step ${count} of ${trace.length}`;
  const cut = trace.cut ? ". The trace is cut: it ends before the run does" : "";
  if (count === 0) return `${at}: nothing has happened yet; the inputs are in HBM${cut}`;
  const visit = trace.visits[trace.visitOf[count - 1]];
  const step = trace.steps[count - 1], { batch, heads } = trace.problem;
  const where = [
    batch * heads > 1 && step.head !== undefined && `batch ${step.batch}, head ${step.head}`,
    visit.row >= 0 && `row tile ${visit.row}`, visit.row >= 0 && visit.col >= 0 && `column tile ${visit.col}`
  ].filter(Boolean).join(", ");
  const end = count === trace.length ? (trace.cut ? ". The trace is cut here" : ". The end") : "";
  return `${at}: ${stepInWords(trace, step)}${where && ` (${where})`}${end}`;
}
