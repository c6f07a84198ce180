// Of a kernel: a lane for each warp on the nominal time axis, with its instructions, barriers and waits.

class Lanes {
  constructor(view, root) {
    this.view = view;
    this.trace = view.trace;
    root.innerHTML = `<div class="lanes-head"><b>Warps</b> <span class="cta"></span>
      <span class="muted">nominal cycles: a shape, not a prediction</span>
      <button class="fit-visit" title="Zoom to the tile visit">tile</button>
      <button class="fit-all" title="Zoom to the whole run">all</button>
      <button class="zoom-in" aria-label="Zoom in">+</button>
      <button class="zoom-out" aria-label="Zoom out">−</button></div>
      <canvas class="lanes" tabindex="0" role="img"
        aria-label="Time line of the warps: left and right arrows go to the lane's neighbouring slices"></canvas>
      <p class="legend" aria-hidden="true">${legendHtml(laneMarks)}</p>`;
    this.canvas = root.querySelector("canvas");
    this.cta = root.querySelector(".cta");
    this.whole = [
      Math.min(...this.trace.steps.map((s) => s.begin ?? 0)), Math.max(1, ...this.trace.steps.map((s) => s.end ?? 0))
    ];
    this.range = [...this.whole];
    this.follows = true;
    const on = (name, f) => (root.querySelector(`.${name}`).onclick = () => (f(), this.draw(this.view.step)));
    on("fit-all", () => ((this.follows = false), (this.range = [...this.whole])));
    on("fit-visit", () => (this.follows = true));
    on("zoom-in", () => this.#zoom(0.5));
    on("zoom-out", () => this.#zoom(2));
    this.canvas.onclick = (e) => this.#click(e);
    this.canvas.onkeydown = (e) => this.#onKey(e);
  }

  draw(step) {
    const g = prepared(this.canvas), palette = this.view.app.palette, { clientWidth: w, clientHeight: h } = this.canvas;
    if (this.follows) this.#fitVisit();
    const rows = this.#rows(step), left = 54, axis = 15, height = Math.min(26, (h - axis) / rows.size);
    const [from, to] = this.range, x = (t) => left + ((t - from) / (to - from)) * (w - left - 4);
    const time = (px) => from + ((px - left) / (w - left - 4)) * (to - from);
    this.geometry = { rows, left, height, x, time };
    this.#drawAxis(g, palette, h - axis, w);
    this.#drawNames(g, palette);
    g.save();
    g.beginPath();
    g.rect(left, 0, w - left, h);
    g.clip();
    for (const s of this.trace.steps)
      if (s.end >= from && s.begin <= to && rows.has(s.lane)) this.#drawSlice(g, s, palette);
    if (step) this.#drawCurrent(g, step, palette, h - axis);
    g.restore();
  }

  /** The warps of the step's CTA: lane of the trace → row, by the warp's number. */
  #rows(step) {
    const { trace } = this, cta = trace.ctaOf(step?.lane);
    const lanes = trace.lanes.map((lane, k) => ({ k, warp: lane.warp })).filter(({ k }) => trace.ctaOf(k) === cta);
    return new Map(lanes.sort((a, b) => a.warp - b.warp).map(({ k }, row) => [k, row]));
  }

  #drawNames(g, palette) {
    g.font = labelFont;
    g.fillStyle = palette.ink;
    g.textAlign = "left";
    g.textBaseline = "middle";
    const { rows, height } = this.geometry;
    for (const [lane, row] of rows) g.fillText(`warp ${this.trace.lanes[lane].warp}`, 2, (row + 0.5) * height);
    const ctas = new Set(this.trace.lanes.map((l) => String(l.cta)));
    const [first] = rows.keys();
    this.cta.textContent = ctas.size > 1 ? `of CTA ${this.trace.ctaOf(first)}, one of ${ctas.size}:` : "";
  }

  #fitVisit() {
    const { view, trace } = this, visit = trace.visits[trace.visitOf[Math.max(0, view.count - 1)]];
    if (!visit) return;
    const steps = trace.steps.slice(visit.first, visit.end), begin = Math.min(...steps.map((s) => s.begin ?? 0)),
          end = Math.max(...steps.map((s) => s.end ?? 0));
    const margin = Math.max(4, 0.03 * (end - begin));
    this.range = [begin - margin, end + margin];
  }

  #zoom(factor) {
    const step = this.view.step, middle = step ? (step.begin + step.end) / 2 : (this.range[0] + this.range[1]) / 2;
    const half = Math.min((this.range[1] - this.range[0]) * factor, 2 * (this.whole[1] - this.whole[0])) / 2;
    this.follows = false;
    this.range = [middle - half, middle + half];
  }

  #drawAxis(g, palette, y, w) {
    const [from, to] = this.range, { x } = this.geometry;
    const rough = (to - from) / 6, unit = 10 ** Math.floor(Math.log10(rough));
    const tick = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= rough) ?? unit;
    g.strokeStyle = palette.line;
    g.fillStyle = palette.muted;
    g.font = "10px system-ui, sans-serif";
    g.textAlign = "center";
    g.textBaseline = "top";
    for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) {
      if (t < 0) continue;
      g.beginPath();
      g.moveTo(x(t), 0), g.lineTo(x(t), y);
      g.stroke();
      g.fillText(grouped(t), x(t), y + 3);
    }
  }

  /** As laneMarks has it; a mark is a line. */
  #drawSlice(g, step, palette) {
    const { rows, height, x } = this.geometry;
    const top = rows.get(step.lane) * height + 2, h = height - 4, left = x(step.begin),
          w = Math.max(1, x(step.end) - left - 0.5);
    if (step.do === "mark") {
      g.fillStyle = palette.ink;
      g.fillRect(left, top - 2, 1, height);
      return;
    }
    const waits = step.do === "barrier" || step.do === "wait";
    g.fillStyle = waits ? palette.hatches.masked : sliceColor(step, palette);
    g.fillRect(left, top, w, h);
    if (waits || w > 4) {
      g.strokeStyle = palette.paper;
      if (waits) g.strokeStyle = palette.ink;
      g.lineWidth = 0.7;
      g.strokeRect(left, top, w, h);
    }
    if (w < 44) return;
    g.fillStyle = waits ? palette.ink : "#111";
    g.font = "10px system-ui, sans-serif";
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.save();
    g.beginPath();
    g.rect(left, top, w, h);
    g.clip();
    g.fillText(`${step.name ?? step.do}${step.times > 1 ? ` ×${step.times}` : ""}`, left + 3, top + h / 2);
    g.restore();
  }

  #drawCurrent(g, step, palette, bottom) {
    const { rows, height, x } = this.geometry;
    const left = x(step.begin), w = Math.max(2, x(step.end) - left), top = rows.get(step.lane) * height;
    g.strokeStyle = palette.pick;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(left, 0), g.lineTo(left, bottom);
    g.stroke();
    g.lineWidth = 2.5;
    g.strokeRect(left, top + 1, w, height - 2);
  }

  #click(e) {
    const box = this.canvas.getBoundingClientRect(), { rows, height, time } = this.geometry;
    const row = Math.floor((e.clientY - box.top) / height), t = time(e.clientX - box.left);
    const distance = (s) => Math.max(s.begin - t, t - s.end, 0);
    const near = this.trace.steps.filter((s) => rows.get(s.lane) === row && s.do !== "mark");
    if (near.length) this.view.jump(near.reduce((a, b) => (distance(b) < distance(a) ? b : a)).index + 1);
  }

  #onKey(e) {
    if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    const lane = this.view.step?.lane ?? 0, of = this.trace.steps.filter((s) => (s.lane ?? 0) === lane);
    const to = e.key === "ArrowRight" ? of.find((s) => s.index + 1 > this.view.count) :
                                        of.findLast((s) => s.index + 1 < this.view.count);
    if (to) this.view.jump(to.index + 1);
    e.preventDefault();
    e.stopPropagation();
  }
}

function sliceColor(step, palette) {
  if (/mma/.test(step.name ?? "")) return palette.mma;
  if (step.do === "global") return palette.global;
  if (step.do === "shared" || /ldmatrix|stmatrix/.test(step.name ?? "")) return palette.shared;
  return palette.other;
}
