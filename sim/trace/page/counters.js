// Counters: what moved between HBM and SRAM, what was computed, and who holds the SRAM now.

/** Elements and bytes of HBM by tensor: a column for each. */
function tensorTable(trace, state) {
  const tensors = trace.tensors.map((t, k) => ({ name: t.name, count: state.ofTensor[k] }));
  const columns = [...tensors.filter(({ name }) => trace.movedTensors.has(name)), { name: "all", count: state.counts }];
  const line = (title, of, note) => tr(rowHead(title, note), columns.map(({ count }) => td(grouped(of(count)))));
  return tableHtml({
    name: "moved",
    caption: "HBM elements moved so far: counted, not timed.",
    head: columns.map(({ name }) => name),
    rows: [
      line("read", (c) => c.read, "Elements from HBM to SRAM. What a cache would save is not counted."),
      line("written", (c) => c.written, "Elements from SRAM to HBM."),
      ...(trace.hasSums ? [line("added", (c) => c.rmw, "Atomic additions in HBM: each reads and writes.")] : []),
      line("bytes", (c) => c.bytes, "By each tensor's own format; an addition counts twice."),
    ],
  });
}

function workHtml(state) {
  const [read, written] = state.counts.sram.map(grouped), [products, exps, others] = state.counts.flops.map(grouped);
  return `<p class="work">
    <span title="Elements that products and passes read in SRAM or write to it, and loads and stores.">SRAM traffic
      <b>${read}</b> read, <b>${written}</b> written</span>
    <span title="2mnk of each product made, masked elements of visited tiles included. Not a speed.">FLOPs
      <b>${products}</b> in products, <b>${exps}</b> exp, <b>${others}</b> other</span></p>`;
}

/** Who holds the SRAM: a bar up to M or the trace's peak, whichever is more; where M is far larger, up to the peak. */
function sramBar(trace, state) {
  const capacity = trace.sram?.capacity_bytes || 0, { held, peak } = state.counts, isFar = capacity > 4 * trace.peak;
  const whole = Math.max(1, trace.peak, isFar ? 0 : capacity), percent = (n) => `${((100 * n) / whole).toFixed(2)}%`;
  const holders = state.holders(trace, trace.steps[state.count - 1]);
  const part = ({ name, bytes }, k) =>
    `<span class="holder h${k % 4}" style="width:${percent(bytes)}" title="${escaped(name)}: ${grouped(bytes)} bytes">` +
    `${escaped(name)}</span>`;
  const times = capacity ? `: <b>${shown(peak / capacity, 3)} M</b>` : "", over = peak > capacity ? ", more than there is" : "";
  const names = holders.map((t) => `${t.name} ${bytesShown(t.bytes)}`).join(", ") || "nothing";
  return `<div class="sram">
    <p title="M is the SRAM of one worker. The paper's block sizes may overflow it: its Θ hides S and the statistics.">
      ${trace.isKernel ? "Shared memory" : "SRAM"}: <b>${bytesShown(held)}</b> held, peak so far <b>${bytesShown(peak)}</b>
      of M = ${bytesShown(capacity)}${times}${over}. ${isFar ? '<span class="muted">The bar: the trace’s peak.</span>' : ""}</p>
    <div class="bar" role="img" aria-label="Held by ${escaped(names)}">${holders.map(part).join("")}
      <span class="peak" style="left:${percent(peak)}" title="peak so far"></span>
      ${isFar ? "" : `<span class="capacity" style="left:calc(${percent(capacity)} - 16px)" title="M">M</span>`}</div></div>`;
}

function drawCounters(root, trace, state) {
  root.innerHTML = sramBar(trace, state) + tensorTable(trace, state) + workHtml(state);
}
