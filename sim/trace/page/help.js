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

const marks = [
  ["k-sram", "a tile in SRAM: solid thin frame"],
  ["k-read", "R: read now, from HBM or by the computation"],
  ["k-write", "W: written to HBM now; = : computed now"],
  ["k-masked", "masked: the query does not see the key"],
  ["k-stale", "in HBM, but not final: it will be written again"],
  ["k-gone", "was in SRAM, is gone; never in HBM"],
  ["k-empty", "memory not yet written"],
  ["k-pick", "chosen row and cell; dashed: the cells it came from"],
];

function helpHtml() {
  const keyLine = ([names, what]) =>
      tr(rowHead(names.split("  ").map((k) => `<kbd>${escaped(k)}</kbd>`).join(" ")), td(what));
  const markLine = ([swatch, what]) => tr(rowHead(`<span class="swatch ${swatch}"></span>`), td(what));
  return `<h2 id="help-title">Keys and marks</h2><div class="help-columns">
    <table><caption>Keys</caption><tbody>${keys.map(keyLine).join("")}</tbody></table>
    <table><caption>Marks</caption><tbody>${marks.map(markLine).join("")}</tbody></table></div>
    <p>Colours: dark blue is negative, light orange positive, each name on a scale of its own. Kᵀ and Vᵀ are drawn
    turned, so that a key is a column of S and P. Click a cell for its formula; click a line of code for its next
    execution, with Shift for its last.</p>
    <p>Counted are elements that a worker moves between HBM and SRAM, as the program asks for them: no cache, no time.
    The address holds step, row, cell and breaks: a link shows what you see.</p>
    <button class="close">Close</button>`;
}

const legend = {
  "k-sram": "in SRAM",
  "k-read": "read",
  "k-write": "written",
  "k-masked": "masked",
  "k-stale": "not final",
  "k-gone": "gone",
  "k-empty": "unwritten",
};

const legendHtml = () =>
    Object.entries(legend).map(([swatch, what]) => `<span><i class="swatch ${swatch}"></i>${what}</span>`).join("");

/** A <dialog> that H and ? open. */
class Help {
  constructor(dialog) {
    this.dialog = dialog;
    dialog.innerHTML = helpHtml();
    dialog.querySelector(".close").onclick = () => dialog.close();
  }
  toggle() { this.dialog.open ? this.dialog.close() : this.dialog.showModal(); }
}
