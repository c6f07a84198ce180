// The page: one or two views, what they share, and the address.

class App {
  constructor(traces) {
    this.views = [];
    this.theme = "";
    this.tab = "code";
    this.isLocked = true;
    this.conditions = noConditions();
    this.palette = new Palette();
    for (const trace of traces.slice(0, 2)) this.#add(trace);
    this.active = this.views[0];
    this.controls = new Controls(this);
    addEventListener("popstate", () => this.restore());
    addEventListener("hashchange", () => this.restore());
    addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paintTheme());
    this.restore();
  }

  #add(json) {
    const root = document.createElement("section");
    byId("views").append(root);
    this.views.push(new View(this, new Trace(json), root, this.views.length));
    document.body.classList.toggle("two", this.views.length > 1);
  }

  /** Shows another trace beside the first. */
  open(json) {
    if (!Array.isArray(json?.steps)) throw new Error("no steps");
    if (this.views.length > 1) this.views.pop().root.remove();
    this.#add(json);
    this.active = this.views[0];
    this.#follow(this.active);
    this.changed();
  }

  restore() {
    restoreFromAddress(this);
    this.#paintTheme();
  }

  /** @param isJump leaves an entry in the browser's history */
  moveTo(view, count, isJump = false) {
    if (isJump) this.#writeAddress("replaceState");
    this.active = view;
    this.notice("");
    view.count = Math.max(0, Math.min(view.trace.length, Math.trunc(count) || 0));
    this.#follow(view);
    this.changed();
    if (isJump) this.#writeAddress("pushState");
  }

  /** Locked, the other trace goes where this one is. */
  #follow(view) {
    const other = this.views.find((v) => v !== view);
    if (other && this.isLocked) other.count = partnerCount(view.trace, view.count, other.trace);
  }

  activate(view) {
    if (view === this.active) return;
    this.active = view;
    this.draw();
  }

  /** Draws at once; the address follows a little later, since browsers bear few changes of it in a second. */
  changed() {
    this.draw();
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.#writeAddress("replaceState"), 150);
  }

  #writeAddress(how) {
    clearTimeout(this.pending);
    const address = addressOf(this);
    if (address !== location.hash) history[how](null, "", address);
  }

  draw() {
    this.views.forEach((view) => {
      view.root.classList.toggle("active", view === this.active && this.views.length > 1);
      view.root.dataset.tab = this.tab;
      view.draw();
    });
    if (this.views.length > 1) drawDifference(byId("difference"), this.views);
    this.controls.draw();
  }

  /** To the line's next execution (or last one); over the end it begins again, and says so. */
  toLine(view, file, line, isBack) {
    const at = view.trace.stepsOfLine.get(`${file}:${line}`).map((k) => k + 1);
    const next = isBack ? at.findLast((k) => k < view.count) : at.find((k) => k > view.count);
    this.moveTo(view, next ?? (isBack ? at.at(-1) : at[0]), true);
    const [where, which] = isBack ? ["before", "last"] : ["after", "first"];
    if (next === undefined) this.notice(`Line ${line} runs no more ${where} here: this is its ${which} execution`);
  }

  setConditions(conditions) {
    this.conditions = conditions;
    this.changed();
  }

  setLock(isLocked) {
    this.isLocked = isLocked;
    this.#follow(this.active);
    this.changed();
  }

  setTab(tab) {
    this.tab = tab;
    this.changed();
  }

  turnTheme() {
    this.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    this.#paintTheme();
    this.changed();
  }

  /** The chosen theme, or else the system's. */
  #paintTheme() {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset.theme = this.theme || system;
    this.palette = new Palette();
    this.draw();
  }

  notice(text) { byId("notice").textContent = text; }

  /** Of all that the traces' states show; for tests. */
  digest() { return this.views.map((view) => view.digest()).join(" "); }
}

window.stepper = new App(JSON.parse(byId("traces").textContent));
