// Controls: buttons, slider, step box, chapters, row and head, and the keys that do the same.

const byId = (id) => document.getElementById(id);

class Controls {
  constructor(app) {
    this.app = app;
    this.breakForm = new BreakForm(app, byId("break-form"));
    this.help = new Help(byId("help"));
    const on = (id, f) => (byId(id).onclick = f);
    on("first", () => app.moveTo(app.active, 0, true));
    on("tile-back", () => this.#tile(-1));
    on("back", () => this.#step(-1));
    on("play", () => this.play(!this.timer));
    on("forward", () => this.#step(1));
    on("tile", () => this.#tile(1));
    on("last", () => app.moveTo(app.active, app.active.trace.length, true));
    on("break-back", () => this.run(-1));
    on("break-forward", () => this.run(1));
    on("breaks", () => this.#openBreaks(byId("break-form").hidden));
    on("theme", () => app.turnTheme());
    on("help-button", () => this.help.toggle());
    on("copy", () => this.#copy());
    on("lock", () => app.setLock(!app.isLocked));
    on("second", () => byId("file").click());
    byId("file").onchange = (e) => this.#openFile(e.target);
    byId("slider").oninput = (e) => app.moveTo(app.active, Number(e.target.value));
    byId("slider").onchange = (e) => app.moveTo(app.active, Number(e.target.value), true);
    byId("step").onchange = (e) => app.moveTo(app.active, Number(e.target.value), true);
    byId("chapter").onchange = (e) => app.moveTo(app.active, Number(e.target.value), true);
    byId("row").onchange = (e) => app.active.chooseRow(e.target.value);
    byId("head").onchange = (e) => this.#chooseHead(e.target.value);
    for (const tab of ["code", "row", "cell"]) on(`tab-${tab}`, () => app.setTab(tab));
    document.addEventListener("keydown", (e) => this.#onKey(e));
  }

  draw() {
    const { app } = this, view = app.active, { trace } = view;
    byId("slider").max = trace.length;
    byId("slider").value = view.count;
    byId("slider").setAttribute("aria-valuetext", `step ${view.count} of ${trace.length}`);
    byId("step").max = trace.length;
    byId("step").value = view.count;
    byId("steps").textContent = `of ${grouped(trace.length)}`;
    byId("row").value = view.row;
    byId("row").max = trace.problem.n_q - 1;
    byId("command").textContent = trace.command;
    byId("title").textContent =
        app.views.map((v) => `${v.trace.title}${v.trace.isKernel ? " (kernel)" : ""}`).join(" and ");
    byId("cut").hidden = !trace.cut;
    if (trace.cut)
      byId("cut").textContent =
          `The trace is cut after ${grouped(trace.cut.steps)} of ${grouped(trace.cut.of)} steps: ${trace.cut.why}`;
    this.#drawChapters(trace, view);
    this.#drawHeads(trace, view);
    this.breakForm.draw(app.conditions, trace);
    byId("breaks").setAttribute("aria-pressed", String(isAny(app.conditions)));
    byId("lock").hidden = app.views.length < 2;
    byId("lock").setAttribute("aria-pressed", String(app.isLocked));
    byId("lock").textContent = app.isLocked ? "locked" : "unlocked";
    for (const tab of ["code", "row", "cell"]) byId(`tab-${tab}`).setAttribute("aria-pressed", String(app.tab === tab));
    byId("sentence").textContent = positionInWords(trace, view.count);
  }

  #drawChapters(trace, view) {
    const select = byId("chapter");
    if (this.chaptersOf !== trace) {
      const chapters = trace.chapters.map((c) => option(c.first + 1, c.name)).join("");
      const tiles = trace.visits.filter((v) => v.row >= 0).map((v) => option(v.first + 1, visitInWords(trace, v)));
      select.innerHTML = `${option(0, "start")}<optgroup label="chapters">${chapters}</optgroup>
        <optgroup label="tile visits: row, column">${tiles.join("")}</optgroup>`;
      this.chaptersOf = trace;
    }
    const visit = view.count ? trace.visits[trace.visitOf[view.count - 1]] : null;
    const chapter = view.count ? trace.chapters[trace.chapterAt(view.count)].first + 1 : 0;
    select.value = visit?.row >= 0 ? visit.first + 1 : chapter;
  }

  #drawHeads(trace, view) {
    const select = byId("head"), { batch, heads } = trace.problem;
    select.parentElement.hidden = batch * heads < 2;
    if (this.headsOf !== trace) {
      const names = Array.from({ length: batch * heads }, (_, k) => [Math.floor(k / heads), k % heads]);
      const options = names.map(([b, h]) => option(`${b}.${h}`, `batch ${b}, head ${h}`));
      select.innerHTML = option("", "follow") + options.join("");
      this.headsOf = trace;
    }
    select.value = view.followsHead ? "" : `${view.batch}.${view.head}`;
  }

  #chooseHead(text) {
    const [batch, head] = text.split(".").map(Number);
    this.app.active.choose(text ? { followsHead: false, batch, head } : { followsHead: true });
  }

  #step(by) { this.app.moveTo(this.app.active, this.app.active.count + by); }

  #tile(direction) {
    const { count, trace } = this.app.active, starts = trace.visits.map((v) => v.first + 1);
    const to = direction > 0 ? starts.find((s) => s > count) ?? trace.length : starts.findLast((s) => s < count) ?? 0;
    this.app.moveTo(this.app.active, to);
  }

  /** To the next break, or the last one. */
  run(direction) {
    const { app } = this, view = app.active;
    if (!isAny(app.conditions)) return this.#openBreaks(true);
    const to = nextBreak(view.trace, view.count, direction, app.conditions, view.row);
    if (to === null) return app.notice(`No ${direction > 0 ? "further" : "earlier"} step meets a break condition`);
    app.moveTo(view, to);
  }

  #openBreaks(isOpen) {
    byId("break-form").hidden = !isOpen;
    byId("breaks").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) byId("break-form").querySelector("input").focus();
  }

  play(isOn) {
    clearInterval(this.timer);
    this.timer = isOn ? setInterval(() => this.#tick(), 500) : null;
    byId("play").textContent = isOn ? "pause" : "play";
  }

  #tick() {
    const { active } = this.app;
    active.count < active.trace.length ? this.#step(1) : this.play(false);
  }

  #copy() {
    const text = byId("command").textContent;
    const done = () => this.app.notice("The command is copied");
    const selected = () =>
        (getSelection().selectAllChildren(byId("command")),
         document.execCommand("copy") ? done() : this.app.notice("Copy the selected command by hand"));
    navigator.clipboard ? navigator.clipboard.writeText(text).then(done, selected) : selected();
  }

  async #openFile(input) {
    const file = input.files[0];
    if (!file) return;
    try {
      this.app.open(tracesIn(await file.text())[0]);
    } catch (error) {
      this.app.notice(`${file.name} holds no trace: take a stepper page or its JSON`);
    }
    input.value = "";
  }

  #onKey(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape" && !byId("break-form").hidden) return this.#openBreaks(false), byId("breaks").focus();
    if (byId("help").open) {
      if (/^[hH?]$/.test(e.key)) this.help.toggle(), e.preventDefault();
      return;
    }
    if (isForControl(e)) return;
    const action = this.#actions()[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!action) return;
    action(e.shiftKey ? -1 : 1);
    e.preventDefault();
  }

  #actions() {
    const { app } = this, view = app.active;
    const end = () => app.moveTo(view, view.trace.length, true), start = () => app.moveTo(view, 0, true);
    return {
      " ": (way) => this.#step(way),
      ArrowRight: () => this.#step(1),
      ArrowLeft: () => this.#step(-1),
      n: (way) => this.#tile(way),
      PageDown: () => this.#tile(1),
      PageUp: () => this.#tile(-1),
      g: end,
      End: end,
      r: start,
      Home: start,
      p: () => this.play(!this.timer),
      b: (way) => this.run(way),
      ArrowUp: () => view.chooseRow(view.row - 1),
      ArrowDown: () => view.chooseRow(view.row + 1),
      t: () => app.turnTheme(),
      h: () => this.help.toggle(),
      "?": () => this.help.toggle(),
      l: () => app.views.length > 1 && app.setLock(!app.isLocked),
      1: () => app.activate(app.views[0]),
      2: () => app.views[1] && app.activate(app.views[1]),
    };
  }
}

/** Does the control that has the focus need the key itself? */
function isForControl({ target, key }) {
  if (target.closest("select, textarea")) return true;
  if (target.closest("button, summary, [type=checkbox]")) return key === " " || key === "Enter";
  if (target.closest("input")) return !/^[a-z?]$/i.test(key);
  return target.closest("[role=region]") !== null && /^(ArrowUp|ArrowDown|PageUp|PageDown|Home|End)$/.test(key);
}

/** The traces of a stepper page or of a JSON file. */
function tracesIn(text) {
  const page = text.match(/<script type="application\/json" id="traces">([^]*?)<\/script>/);
  const json = JSON.parse(page ? page[1] : text);
  return Array.isArray(json) ? json : [json];
}
