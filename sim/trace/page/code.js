// The code pane: the stage's file, the line that runs, and in the margin what each line has read and written so far.

class CodePane {
  /** @param onLine called with (file, line, isBackward) when a line that runs is chosen */
  constructor(trace, root, onLine) {
    this.trace = trace;
    this.onLine = onLine;
    this.root = root;
    this.file = -1;
    this.rows = new Map();
    root.innerHTML = `<div class="code-head"><select aria-label="Source file"></select>
      <span class="muted" title="Elements that the line moved from HBM and to it up to now">read · written</span></div>
      <div class="code-lines" role="listbox" tabindex="0"
        aria-label="Source code: arrows choose a line, Enter its next execution, Shift+Enter its last"></div>`;
    this.select = root.querySelector("select");
    this.lines = root.querySelector(".code-lines");
    this.select.innerHTML = trace.files.map((f, k) => option(k, f.path)).join("");
    this.select.onchange = () => this.#open(Number(this.select.value));
    this.lines.onclick = (e) => {
      const line = e.target.closest(".runs");
      if (line) this.onLine(this.file, Number(line.dataset.line), e.shiftKey);
    };
    this.lines.onkeydown = (e) => this.#onKey(e);
  }

  draw(state, step) {
    if (step?.at && step.at[0] !== this.file)
      this.#open(step.at[0]);
    else if (this.file < 0 && this.trace.files.length)
      this.#open(0);
    for (const [line, row] of this.rows) {
      const so = state.lines.get(`${this.file}:${line}`) ?? { read: 0, written: 0, runs: 0 };
      const text = row.total.read + row.total.written ? movedShown(so) : "";
      if (row.margin.textContent !== text) row.margin.textContent = text;
    }
    this.#mark(step?.at && step.at[0] === this.file ? step.at[1] : 0);
  }

  #open(file) {
    this.file = file;
    this.select.value = String(file);
    this.rows = new Map();
    this.marked = this.chosen = 0;
    const { lines } = this.trace.files[file];
    this.lines.innerHTML = lines.map((text, k) => this.#lineHtml(file, k + 1, text)).join("");
    this.lines.style.setProperty("--margin", `${this.#marginWidth(file, lines.length)}ch`);
    for (const element of this.lines.querySelectorAll(".runs")) {
      const line = Number(element.dataset.line);
      this.rows.set(
          line,
          { element, margin: element.querySelector(".margin"), total: this.trace.lineTotals.get(`${file}:${line}`) });
    }
  }

  /** Characters of the longest text that the file's margin will have. */
  #marginWidth(file, count) {
    const totals = Array.from({ length: count }, (_, k) => this.trace.lineTotals.get(`${file}:${k + 1}`));
    return Math.max(0, ...totals.filter((t) => t?.read + t?.written > 0).map((t) => movedShown(t).length));
  }

  #lineHtml(file, line, text) {
    const total = this.trace.lineTotals.get(`${file}:${line}`);
    const [, code, comment] = text.match(/^((?:[^/]|\/(?!\/))*)(\/\/.*)?$/) ?? [0, text, ""];
    const words = `${escaped(code.replace(/(\S) {3,}$/, "$1  "))}<i>${escaped(comment ?? "")}</i>`;
    const hang = text.search(/\S|$/) + 4;  // where a line too long for the pane goes on
    const body = `<span class="margin"></span><span class="number">${line}</span>` +
        `<span class="words" style="--hang: ${hang}ch">${words}</span>`;
    if (!total) return `<div class="line ${/[/][/] (--|==)/.test(text) ? "banner" : ""}">${body}</div>`;
    const all = `; at the end ${grouped(total.read)} elements read and ${grouped(total.written)} written`;
    const moved = total.read + total.written > 0 ? all : "";
    return `<div class="line runs" role="option" id="line-${this.root.id}-${file}-${line}" data-line="${line}" ` +
        `title="Runs ${total.runs}×${moved}. Click: its next execution; with Shift: its last.">${body}</div>`;
  }

  #mark(line) {
    if (line === this.marked) return;
    this.rows.get(this.marked)?.element.classList.remove("current");
    this.rows.get(this.marked)?.element.removeAttribute("aria-current");
    this.marked = line;
    const element = this.rows.get(line)?.element;
    if (!element) return;
    element.classList.add("current");
    element.setAttribute("aria-current", "step");
    const { offsetTop } = element, box = this.lines;
    if (offsetTop < box.scrollTop + 20 || offsetTop > box.scrollTop + box.clientHeight - 50)
      box.scrollTop = offsetTop - box.clientHeight / 2;
  }

  #onKey(e) {
    const running = [...this.rows.keys()];
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      const from = running.indexOf(this.chosen || this.marked), to = from + (e.key === "ArrowDown" ? 1 : -1);
      this.#choose(running[Math.max(0, Math.min(running.length - 1, to))]);
    } else if (e.key === "Enter" && this.chosen) {
      this.onLine(this.file, this.chosen, e.shiftKey);
    } else
      return;
    e.preventDefault();
    e.stopPropagation();
  }

  #choose(line) {
    this.rows.get(this.chosen)?.element.removeAttribute("aria-selected");
    this.chosen = line;
    const element = this.rows.get(line)?.element;
    element?.setAttribute("aria-selected", "true");
    element?.scrollIntoView({ block: "nearest" });
    this.lines.setAttribute("aria-activedescendant", element?.id ?? "");
  }
}

const movedShown = ({ read, written }) => `${grouped(read)} · ${grouped(written)}`;
