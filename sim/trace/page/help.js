// The help: keys and marks, as an overlay.

const keys = [
  ["→  Space", "next step"],
  ["←  Shift+Space", "one step back"],
  ["N  Page down", "next tile visit; with Shift: the last one"],
  ["G  End", "to the end"],
  ["R  Home", "to the start"],
  ["P", "play, pause"],
  ["B", "run to the next break; with Shift: back"],
  ["↑ ↓", "chosen row"],
  ["1  2  L", "with two traces: left, right; lock"],
  ["T", "theme: light, dark"],
  ["H  ?", "this help; Escape closes it"],
];

/** Swatch, its words in the legend under the picture (none: only in the help), its words in the help. */
const marks = [
  ["k-sram", "in SRAM", "a tile in SRAM, of a kernel in shared memory or registers: solid thin frame"],
  ["k-read", "read", "R: read now, from HBM or by the computation"],
  ["k-write", "written", "W: written now, to HBM or to a kernel's tile; = : computed now"],
  ["k-masked", "masked", "masked: the query does not see the key"],
  ["k-stale", "not final", "in HBM, but not final: it will be written again"],
  ["k-gone", "gone", "was in SRAM, is gone; never in HBM"],
  ["k-empty", "unwritten", "memory not yet written"],
  ["k-pick", "", "chosen row and cell; dashed: the cells it came from"],
];

/** The same for what a kernel's warps do. */
const laneMarks = [
  ["k-mma", "mma", "matrix products: mma"],
  ["k-global", "global memory", "global memory: loads and stores between HBM and registers or shared memory"],
  ["k-shared", "shared memory", "shared memory: loads and stores between it and registers"],
  ["k-other", "other", "other instructions: arithmetic, shuffles"],
  ["k-masked", "barrier, wait", "at a barrier, or waiting"],
];

function helpHtml() {
  const keyLine = ([names, what]) =>
      tr(rowHead(names.split("  ").map((k) => `<kbd>${escaped(k)}</kbd>`).join(" ")), td(what));
  const markLine = ([swatch, , what]) => tr(rowHead(`<i class="swatch ${swatch}"></i>`), td(what));
  return `<h2 id="help-title">Keys and marks</h2><div class="help-columns">
    <table><caption>Keys</caption><tbody>${keys.map(keyLine).join("")}</tbody></table>
    <table><caption>Marks</caption><tbody>${marks.map(markLine).join("")}</tbody>
    <tbody><tr><th></th><td class="muted">Warps of a kernel, on their time line</td></tr>
    ${laneMarks.map(markLine).join("")}</tbody></table></div>
    <p>Colours: dark blue is negative, light orange positive, each name on a scale of its own. Kᵀ and Vᵀ are drawn
    turned, so that a key is a column of S and P. Click a cell for its formula; click a line of code for its next
    execution, with Shift for its last.</p>
    <p>Beside a kernel's matrices stand its arrays in shared memory, which all warps of the CTA share, and the tiles in
    registers: those parts that the step's warp holds.</p>
    <p>Counted are elements that a worker moves between HBM and SRAM, as the program asks for them: no cache, no time.
    The address holds step, row, cell and breaks: a link shows what you see.</p>
    <button class="close">Close</button>`;
}

const legendHtml = (all) =>
    all.filter(([, short]) => short)
        .map(([swatch, short]) => `<span><i class="swatch ${swatch}"></i>${short}</span>`)
        .join("");

/** A <dialog> that H and ? open. */
class Help {
  constructor(dialog) {
    this.dialog = dialog;
    dialog.innerHTML = helpHtml();
    dialog.querySelector(".close").onclick = () => dialog.close();
  }
  toggle() { this.dialog.open ? this.dialog.close() : this.dialog.showModal(); }
}
