// What tests ask of a stepper page: run in it after it has loaded.
window.look = (() => {
  const view = (k = 0) => stepper.views[k];
  const state = () => stepper.active.replay.at(stepper.active.count);
  const texts = (css, f) => [...document.querySelectorAll(css)].map(f);
  /** As the trace has it: JSON has no −∞ and NaN. */
  const plain = (x) => (x === undefined || Number.isFinite(x) ? x : Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf");

  const cell = (name, i, j) => {
    const { sram, hbm } = stepper.active.picture.valueOf({ name, i, j });
    return [plain(sram) ?? null, plain(hbm) ?? null];
  };

  /** Every computed cell: which statements have no formula, and where a formula's value is not the trace's. */
  const formulas = (k) => {
    const { trace, formulas } = view(k), found = { checked: 0, without: [], wrong: [] };
    for (const step of trace.steps) {
      if (step.do !== "compute" && step.do !== "fill") continue;
      const formula = formulas.of(step), place = `step ${step.index + 1}, ${step.name}: ${sourceOf(trace, step)}`;
      if (!formula) found.without.push(place);
      else formulaOfStep(step, formula, place, found);
    }
    return found;
  };
  const formulaOfStep = (step, formula, place, found) => {
    const nc = step.cols[1] - step.cols[0];
    step.values.forEach((traced, k) => {
      const i = Math.floor(k / nc), j = k % nc, value = formula.value(i, j);
      ++found.checked;
      if (!agrees(value, traced))
        found.wrong.push(`${place} at ${i}, ${j}: ${formula.sym(i, j)} = ${value.v} ± ${value.e}, not ${traced}`);
    });
  };

  /** The middle of a cell on the screen. */
  const point = (name, i, j) => {
    const slot = stepper.active.picture.slots.get(name), box = stepper.active.picture.canvas.getBoundingClientRect();
    const [r, c] = slot.turned ? [j, i] : [i, j];
    return [box.left + slot.x + (c + 0.5) * slot.cw, box.top + slot.y + (r + 0.5) * slot.ch];
  };
  /** The middle of a lane at the middle of the time shown: [cycles, x, y]. */
  const laneMiddle = (row) => {
    const { range, canvas, geometry } = stepper.active.lanes, time = (range[0] + range[1]) / 2;
    const box = canvas.getBoundingClientRect();
    return [time, box.left + geometry.x(time), box.top + (row + 0.5) * geometry.height];
  };
  const click = (x, y) =>
    document.elementFromPoint(x, y).dispatchEvent(new MouseEvent("click", { clientX: x, clientY: y, bubbles: true }));

  /** The colours inside a cell, as [r, g, b, a, …]. */
  const pixels = (name, i, j) => {
    const { canvas, slots } = stepper.active.picture, slot = slots.get(name), copy = document.createElement("canvas");
    const g = copy.getContext("2d", { willReadFrequently: true }), w = slot.cw - 4, h = slot.ch - 4;
    g.drawImage(canvas, slot.x + j * slot.cw + 2, slot.y + i * slot.ch + 2, w, h, 0, 0, w, h);
    return [...g.getImageData(0, 0, w, h).data];
  };

  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = color.map((x) => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const color = element ? rgb(getComputedStyle(element).backgroundColor) : [255, 255, 255];
    return color.length < 4 || color[3] === 1 ? color : background(element.parentElement);
  };
  /** The three texts of the least contrast: [ratio, text]. */
  const contrasts = () => {
    const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    const isSeen = (e) => e.offsetParent && !e.matches("script, option, :disabled") && hasText(e);
    const ratio = (e) => {
      const [a, b] = [rgb(getComputedStyle(e).color), background(e)].map((c) => luminance(c.slice(0, 3)));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `${e.className}: ${e.textContent.slice(0, 30)}`];
    };
    return texts("body *", (e) => e).filter(isSeen).map(ratio).sort((p, q) => p[0] - q[0]).slice(0, 3);
  };

  /** Panes that leave the screen or lie on one another; and a page that scrolls. */
  const misfits = () => {
    const panes = "header, .picture-pane, .lanes-pane, .row-pane, .counters, .code, .cell-pane, #compare, footer";
    const named = texts(panes, (e) => ({ name: e.className || e.localName, box: e.getBoundingClientRect() }));
    const boxes = named.filter(({ box }) => box.width > 0), page = document.scrollingElement, found = [];
    if (page.scrollWidth > innerWidth || page.scrollHeight > innerHeight) found.push("the page scrolls");
    boxes.forEach(({ name, box: p }, k) => {
      if (p.left < 0 || p.top < 0 || p.right > innerWidth || p.bottom > innerHeight) found.push(`${name} leaves`);
      for (const { name: other, box: q } of boxes.slice(k + 1))
        if (p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)
          found.push(`${name} on ${other}`);
    });
    return found;
  };

  /** Of a canvas: the share of points that are not paper, and the contrast with paper that a quarter of these have. */
  const ink = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const paper = luminance(background(canvas).slice(0, 3)), ratios = [];
    for (let k = 0; k < data.length; k += 4) {
      if (data[k + 3] < 128) continue;
      const l = luminance([...data.subarray(k, k + 3)]), ratio = (Math.max(l, paper) + 0.05) / (Math.min(l, paper) + 0.05);
      if (ratio > 1.2) ratios.push(ratio);
    }
    ratios.sort((a, b) => b - a);
    return [ratios.length / (data.length / 4), ratios[Math.floor(ratios.length / 4)] ?? 1];
  };
  /** The share of points in the last quarter of a matrix's rows that are not paper. */
  const inkAtEndOf = (name) => {
    const { canvas, slots } = stepper.active.picture, { x, y, w, h } = slots.get(name);
    const copy = document.createElement("canvas");
    const part = Math.floor(h / 4);
    Object.assign(copy, { width: w - 2, height: part });
    copy.getContext("2d").drawImage(canvas, x + 1, y + h - part - 1, w - 2, part, 0, 0, w - 2, part);
    canvas.parentElement.append(copy);
    const [share] = ink(copy);
    copy.remove();
    return share;
  };
  const inks = () => texts(".picture, .lanes", ink);

  const time = (count) => {
    const start = performance.now();
    stepper.moveTo(stepper.active, count);
    return performance.now() - start;
  };
  /** How long a step from there takes by itself, the quickest of five times: another process may have the core [ms]. */
  const times = (counts, by) => counts.map((count) =>
    Math.min(...Array.from({ length: 5 }, () => (stepper.moveTo(stepper.active, count), time(count + by)))));

  const margin = (line) => [line.dataset.line, line.querySelector(".margin").textContent];
  const lines = () => Object.fromEntries(texts(".line.runs", margin));
  const lineTotals = (k) => Object.fromEntries([...view(k).trace.lineTotals].map(([key, { read, written }]) => {
    const [file, line] = key.split(":");
    return [`${view(k).trace.files[file].path}:${line}`, [read, written]];
  }));
  const visit = (k) => (view(k).count ? view(k).trace.visits[view(k).trace.visitOf[view(k).count - 1]] : null);

  /** Numbers what the focus should reach. */
  const focusable = () => texts("button, select, input, summary, [tabindex='0']", (e) => e)
    .filter((e) => e.offsetParent && !e.disabled).map((e, k) => (e.dataset.tabbed = String(k)));

  return {
    cell, formulas, point, laneMiddle, click, pixels, contrasts, inkAtEndOf, inks, misfits, times, lines, lineTotals, visit, focusable,
    counts: () => state().counts,
    tile: (id) => [...state().tiles.get(id).values].map(plain),
    tensor: (k) => [...state().tensors[k].values].map(plain),
    column: (css, k) => texts(css, (row) => row.children[k < 0 ? row.children.length + k : k].textContent),
  };
})();
