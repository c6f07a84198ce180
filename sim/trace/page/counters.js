// Counters: what moved between HBM and SRAM, what was computed, and who holds the SRAM now.

/** Inputs first, then what the passes make of them, in their order. */
const tableOrder = (name) => "Q K V S P O l m LSE dO dS dP dQ dK dV".split(" ").indexOf(baseName(name));

/** Elements and bytes of HBM by tensor: a column for each. */
function tensorTable(trace, state) {
  const tensors = trace.tensors.map((t, k) => ({ name: t.name, count: state.ofTensor[k] }))
                      .filter(({ name }) => trace.movedTensors.has(name))
                      .sort((a, b) => tableOrder(a.name) - tableOrder(b.name));
  const columns = [...tensors, { name: "all", count: state.counts }];
  const line = (title, of, note) => tr(rowHead(title, note), columns.map(({ count }) => td(grouped(of(count)))));
  return tableHtml({
    name: "moved",
    caption: "HBM elements moved up to now: what the program asks for, as if nothing were cached. No time.",
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
  return `<p class="work"><span>SRAM traffic <b>${read}</b> read, <b>${written}</b> written</span>
    <span>FLOPs <b>${products}</b> in products, <b>${exps}</b> exp, <b>${others}</b> other</span></p>
    <p class="muted">Operands and results of each statement, once; FLOPs of masked elements, too. No speed.</p>`;
}

/** Whose sizes the tiles are, and what they have to do with M. */
function tilesInWords({ tiles, sram, isKernel }) {
  const size = tiles && `Tiles of Br × Bc = ${grouped(tiles.br)} × ${grouped(tiles.bc)}`;
  if (isKernel) return `One CTA's arrays; registers come on top.${size ? ` ${size} are the kernel's own.` : ""}`;
  if (!size) return "M is one worker's SRAM. A program without tiles: nothing is made to fit.";
  const whose = {
    "paper": "by the paper's sizes for M; they may overflow it: its Θ hides S and the statistics.",
    "strict": "the largest that fit M, one worker's SRAM.",
    "by hand": "chosen by hand or for a small picture, not for M, one worker's SRAM.",
  };
  return `${size}: ${whose[sram?.budget]}`;
}

/** Who holds the SRAM: a bar up to M or the trace's peak, whichever is more; where M is far larger, up to the peak alone. */
function sramBar(trace, state) {
  const capacity = trace.sram?.capacity_bytes || 0, { held, peak } = state.counts, isFar = trace.peak > 0 && capacity > 4 * trace.peak;
  const whole = Math.max(1, trace.peak, isFar ? 0 : capacity), percent = (n) => `${((100 * n) / whole).toFixed(2)}%`;
  const holders = state.holders(trace, trace.steps[state.count - 1]);
  const part = ({ name, bytes }, k) => {
    const style = `class="holder h${k % 4}" style="width:${percent(bytes)}"`;
    return `<span ${style} title="${escaped(name)}: ${grouped(bytes)} bytes">${escaped(name)}</span>`;
  };
  const times = capacity && !isFar ? `: <b>${shown(peak / capacity, 3)} M</b>` : "";
  const over = peak > capacity ? ", more than there is" : "";
  const far = isFar ? `<span class="muted">The bar is M/${shown(capacity / trace.peak, 2)}.</span>` : "";
  const elements = capacity / ({ fp64: 8, fp32: 4 }[trace.dtype] ?? 2);
  const mark = `<span class="capacity" style="left:calc(${percent(capacity)} - 16px)" title="M">M</span>`;
  const names = holders.map((t) => `${t.name} ${bytesShown(t.bytes)}`).join(", ") || "nothing";
  return `<div class="sram">
    <p>${trace.isKernel ? "Shared memory" : "SRAM"}: <b>${bytesShown(held)}</b> held,
      peak up to now <b>${bytesShown(peak)}</b> of
      M = ${bytesShown(capacity)}, ${grouped(elements)} elements${times}${over}. ${far}</p>
    <div class="bar" role="img" aria-label="Held by ${escaped(names)}">${holders.map(part).join("")}
      <span class="peak" style="left:${percent(peak)}" title="peak so far"></span>${isFar ? "" : mark}</div>
    <p class="muted">${tilesInWords(trace)}</p></div>`;
}

function drawCounters(root, trace, state) {
  root.innerHTML = sramBar(trace, state) + tensorTable(trace, state) + (trace.isKernel ? "" : workHtml(state));
}
