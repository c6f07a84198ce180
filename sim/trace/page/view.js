// One trace on the page: its panes, the step it is at, the chosen row, head and cell.

class View {
  /** @param app is told of jumps and of what is chosen */
  constructor(app, trace, root, index) {
    Object.assign(this, { app, trace, root, count: 0, chosenRow: null, cell: null });
    Object.assign(this, { followsHead: true, batch: 0, head: 0 });
    this.replay = new Replay(trace);
    trace.peak = this.replay.at(trace.length).counts.peak;  // and saves states on the way, for jumps
    this.past = new Replay(trace, this.replay.saved);
    this.formulas = new Formulas(trace, new Replay(trace, this.replay.saved));
    root.className = `view${trace.isKernel ? " kernel" : ""}`;
    root.setAttribute("aria-label", `${trace.title} on ${trace.isKernel ? "the virtual GPU" : "the CPU"}`);
    root.innerHTML = `<h2 class="view-title">${escaped(trace.title)}<span class="view-position"></span></h2>
      <div class="left">
      <div class="picture-pane"><canvas class="picture" role="img"></canvas>
        <p class="legend" aria-hidden="true">${legendHtml(marks)}</p></div>
      ${trace.isKernel ? `<div class="lanes-pane"></div>` : ""}
      <div class="row-pane" role="region" aria-label="The chosen row" tabindex="0"></div>
      <div class="counters" role="region" aria-label="Counters" tabindex="0"></div></div>
      <div class="right"><div class="code" id="code-${index}"></div>
      <div class="cell-pane" role="region" aria-label="How a cell is computed" tabindex="0"></div></div>`;
    this.#fillPanes();
    root.addEventListener("pointerdown", () => app.activate(this), true);
    root.addEventListener("focusin", () => app.activate(this));
  }

  #fillPanes() {
    const { app, trace } = this, pane = (name) => this.root.querySelector(`.${name}`);
    this.picture = new Picture(trace, pane("picture"));
    this.code = new CodePane(trace, pane("code"), (file, line, isBack) => app.toLine(this, file, line, isBack));
    this.rowPane = new RowPane(this, pane("row-pane"));
    this.cellPane = new CellPane(this, pane("cell-pane"));
    this.lanes = trace.isKernel ? new Lanes(this, pane("lanes-pane")) : null;
    this.counters = pane("counters");
    pane("picture").onclick = (e) => this.#click(e);
    this.root.addEventListener("click", (e) => {
      const to = e.target.closest("[data-step]");
      if (to) this.jump(Number(to.dataset.step));
    });
  }

  get step() { return this.count > 0 ? this.trace.steps[this.count - 1] : null; }

  /** The chosen row; before one is chosen, the first row of the tile that is worked on. */
  get row() {
    if (this.chosenRow !== null || this.count === 0) return this.chosenRow ?? 0;
    const { trace } = this, visit = trace.visits[trace.visitOf[this.count - 1]];
    return Math.min(Math.max(0, visit.row) * visit.br, Math.max(0, trace.problem.n_q - 1));
  }

  /** The channel of O that the row pane shows: the chosen cell's. */
  get channel() { return this.cell && /^O$/.test(this.cell.name) ? this.cell.j : 0; }

  jump(count) { this.app.moveTo(this, count, true); }

  choose(what) {
    Object.assign(this, what);
    const { cell } = what;
    if (cell && cell.tile === undefined && !isOverKeys(cell.name)) this.chosenRow = cell.i;
    this.app.changed();
  }

  chooseRow(row) { this.choose({ chosenRow: clamp(row, Math.max(0, this.trace.problem.n_q - 1)) }); }

  draw() {
    const { trace, step } = this;
    if (step && this.followsHead && !trace.isKernel) (this.batch = step.batch ?? 0), (this.head = step.head ?? 0);
    const state = this.replay.at(this.count);
    const operands = step && !trace.isKernel ? this.formulas.operandsOf(step) : [];
    const visit = this.count > 0 ? trace.visits[trace.visitOf[this.count - 1]] : null;
    const { batch, head, row, cell } = this, { palette } = this.app;
    drawCounters(this.counters, trace, state);
    this.#fitPicture();
    this.picture.prepare(state, { step, operands, visit, batch, head, row, cell, palette });
    this.picture.draw(this.cellPane.draw(state, this.picture));
    this.picture.canvas.setAttribute("aria-label", this.#pictureInWords(state));
    this.code.draw(state, step);
    this.rowPane.draw(state);
    this.lanes?.draw(step);
    this.root.querySelector(".view-position").textContent = ` · step ${this.count} of ${trace.length}`;
  }

  /**
   * The picture is as high as its width lets it be and leaves room for what is below it. With gradients it has four
   * bands: then the row goes to the other column.
   */
  #fitPicture() {
    const [left, right] = this.root.querySelectorAll(".left, .right");
    const pane = this.picture.canvas.parentElement, row = this.rowPane.root;
    if (this.app.views.length > 1) return (pane.style.flex = "");
    const isTall = !!this.lanes || this.trace.isBackwardAt(this.count), home = isTall ? right : left;
    if (row.parentElement !== home) home.insertBefore(row, home.lastElementChild);
    if (isTall) return (pane.style.flex = "1 1 0");
    const most = left.clientHeight - this.counters.offsetHeight - 135, legend = pane.lastElementChild.offsetHeight + 12;
    const wanted = this.picture.heightFor(this.count, pane.clientWidth - 10, most - legend) + legend;
    pane.style.flex = `0 0 ${Math.round(Math.min(most, wanted))}px`;
  }

  #pictureInWords(state) {
    const held = [...state.tiles.values()]
                     .filter((t) => t.space !== "registers")
                     .map((t) => `${t.name} rows ${rangeShown(t.rows)}`);
    return `Matrices of attention. In SRAM: ${held.join("; ") || "nothing"}. The cell pane below names any cell.`;
  }

  #click(e) {
    const box = this.picture.canvas.getBoundingClientRect();
    const cell = this.picture.cellAt(e.clientX - box.left, e.clientY - box.top);
    if (cell) this.choose({ cell });
  }

  digest() { return this.replay.at(this.count).digest(); }
}
