// Counters: what moved between HBM and SRAM, what was computed, and who holds the SRAM now.

/** Elements and bytes of HBM by tensor: a column for each. */
function tensorTable(trace, state) {
  const shown = trace.tensors.map((t, k) => ({ name: t.name, count: state.ofTensor[k] }))
    .filter(({ name }) => trace.steps.length && trace.movedTensors.has(name));
  const all = [...shown, { name: "all", count: state.counts }];
  const row = (title, key, f, note) => `<tr><th scope="row" title="${note}">${title}</th>` +
    all.map(({ count }) => `<td>${f(key(count))}</td>`).join("") + "</tr>";
  return `<table class="moved"><caption class="muted">HBM elements moved so far: counted, not timed.</caption>
    <thead><tr><td></td>${all.map(({ name }) => `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody>
    ${row("read", (c) => c.read, grouped, "Elements from HBM to SRAM. What a cache would save is not counted.")}
    ${row("written", (c) => c.written, grouped, "Elements from SRAM to HBM.")}
    ${state.counts.rmw || trace.hasRmw ? row("added", (c) => c.rmw, grouped, "Atomic additions in HBM: each reads and writes.") : ""}
    ${row("bytes", (c) => c.bytes, grouped, "By each tensor's own format; an addition counts twice.")}</tbody></table>`;
}

function work(state) {
  const { sram, flops } = state.counts;
  return `<p class="work"><span title="Elements that products and passes read in SRAM or write to it, and loads and stores.">SRAM traffic
    <b>${grouped(sram[0])}</b> read, <b>${grouped(sram[1])}</b> written</span>
    <span title="2mnk of each product made, masked elements of visited tiles included. Not a speed.">FLOPs <b>${grouped(flops[0])}</b> in products,
    <b>${grouped(flops[1])}</b> exp, <b>${grouped(flops[2])}</b> other</span></p>`;
}

/** Who holds the SRAM: a bar up to M or the trace's peak, whichever is more; where M is far larger, up to the peak. */
function sramBar(trace, state) {
  const capacity = trace.sram?.capacity_bytes || 0, { held, peak } = state.counts, isFar = capacity > 4 * trace.peak;
  const whole = isFar ? Math.max(trace.peak, 1) : Math.max(capacity, trace.peak, 1), percent = (n) => `${((100 * n) / whole).toFixed(2)}%`;
  const holders = state.holders(trace, trace.steps[state.count - 1]);
  const parts = holders.map((t, k) => `<span class="holder h${k % 4}" style="width:${percent(t.bytes)}" title="${escaped(t.name)}: ${grouped(t.bytes)} bytes">${escaped(t.name)}</span>`);
  const times = capacity ? `: <b>${shown(peak / capacity, 3)} M</b>` : "", over = peak > capacity ? ", more than there is" : "";
  const scale = isFar ? ` <span class="muted">The bar: the trace's peak.</span>` : "";
  const names = holders.map((t) => `${t.name} ${bytesShown(t.bytes)}`).join(", ") || "nothing";
  return `<div class="sram"><p title="M is the SRAM of one worker. The paper's block sizes may overflow it: the Θ hides S and the statistics.">
    ${trace.isKernel ? "Shared memory" : "SRAM"}: <b>${bytesShown(held)}</b> held, peak so far <b>${bytesShown(peak)}</b> of M = ${bytesShown(capacity)}${times}${over}.${scale}</p>
    <div class="bar" role="img" aria-label="SRAM holds ${escaped(names)}">${parts.join("")}<span class="peak" style="left:${percent(peak)}" title="peak so far"></span>
    ${isFar ? "" : `<span class="capacity" style="left:calc(${percent(capacity)} - 16px)" title="M">M</span>`}</div></div>`;
}

function drawCounters(root, trace, state) {
  trace.movedTensors ??= new Set(trace.steps.filter((s) => s.tensor !== undefined && s.hbm).map((s) => trace.tensors[s.tensor].name));
  trace.hasRmw ??= trace.steps.some((s) => s.hbm?.[2]);
  root.innerHTML = sramBar(trace, state) + tensorTable(trace, state) + work(state);
}
