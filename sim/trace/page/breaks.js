// Break conditions: at which steps "run to next break" stops. Any one of those that are on is enough.

/** @typedef {{m: boolean, row: boolean, write: boolean, line: string, tensor: string}} Conditions */
const noConditions = () => ({ m: false, row: false, write: false, line: "", tensor: "" });

const isAny = (c) => c.m || c.row || c.write || c.line !== "" || c.tensor !== "";

/** Does step k meet a condition? */
function breaksAt(trace, k, conditions, row) {
  const step = trace.steps[k], [, written = 0, rmw = 0] = step.hbm ?? [];
  return (conditions.write && written + rmw > 0) ||
      (conditions.line !== "" && step.at != null && trace.lineKey(step.at) === conditions.line) ||
      (conditions.tensor !== "" && touches(trace, step, conditions.tensor)) ||
      (conditions.row && touchesRow(trace, step, row)) || (conditions.m && maximumChanges(trace)[k] === 1);
}

function touches(trace, step, name) {
  if (baseName(trace.subject(step)) === baseName(name)) return true;
  return (step.changes ?? [])
      .some((c) => c.tensor !== undefined && baseName(trace.tensors[c.tensor].name) === baseName(name));
}

function touchesRow(trace, step, row) {
  if (step.rows) return !isOverKeys(trace.subject(step)) && contains(step.rows, row);
  return (step.changes ?? []).some((c) => {
    if (c.tensor === undefined || isOverKeys(trace.tensors[c.tensor].name)) return false;
    const { rows, cols } = trace.tensors[c.tensor], first = c.first ?? 0, size = rows * cols;
    return overlaps([first % size, (first % size) + c.values.length], [row * cols, (row + 1) * cols]);
  });
}

/** For each step: 1 where a row's running maximum becomes another one. */
function maximumChanges(trace) {
  if (trace.maximumChanges) return trace.maximumChanges;
  const changes = new Uint8Array(trace.length), last = new Map(), names = new Map();
  const see = (k, key, value) => {
    const before = last.get(key) ?? -Infinity;
    if (value !== before && !(isLowest(value) && before === -Infinity)) changes[k] = 1;
    last.set(key, value);
  };
  trace.steps.forEach((step, k) => {
    for (const take of step.takes ?? []) names.set(take.tile, take.name);
    if (step.do === "compute" && /^m(_new)?$/.test(step.name))
      step.values.forEach((v, i) => see(k, `${step.batch ?? 0} ${step.head ?? 0} ${i + step.rows[0]}`, v));
    for (const c of step.changes ?? [])
      if (c.tensor === undefined ? names.get(c.tile) === "m" : trace.tensors[c.tensor].name === "m")
        c.values.forEach((v, i) => see(k, `${c.tensor ?? "tile"} ${(c.first ?? 0) + i}`, v));
  });
  return (trace.maximumChanges = changes);
}

/** The step count at the next (direction 1) or last (−1) break from `count`; null where there is none. */
function nextBreak(trace, count, direction, conditions, row) {
  for (let k = count - 1 + direction; k >= 0 && k < trace.length; k += direction)
    if (breaksAt(trace, k, conditions, row)) return k + 1;
  return null;
}

/** The conditions as text, for the address: m,row,write,line:0:43,tensor:O. */
function conditionsText(c) {
  return [c.m && "m", c.row && "row", c.write && "write", c.line && `line:${c.line}`, c.tensor && `tensor:${c.tensor}`]
      .filter(Boolean)
      .join(",");
}

function conditionsFrom(text) {
  const c = noConditions();
  for (const part of text.split(",")) {
    if (part === "m" || part === "row" || part === "write")
      c[part] = true;
    else if (part.startsWith("line:"))
      c.line = part.slice(5);
    else if (part.startsWith("tensor:"))
      c.tensor = part.slice(7);
  }
  return c;
}

/** The small form behind the "Breaks" button. */
class BreakForm {
  constructor(app, root) {
    this.app = app;
    this.root = root;
    root.innerHTML = `<b>Run stops where</b>
      <label><input type="checkbox" name="m"> a row's maximum m changes</label>
      <label><input type="checkbox" name="row"> the chosen row is touched</label>
      <label><input type="checkbox" name="write"> HBM is written</label>
      <label>this line runs <select name="line" aria-label="Source line"></select></label>
      <label>this tensor is touched <select name="tensor" aria-label="Tensor"></select></label>`;
    root.onchange = () => {
      const of = (name) => root.querySelector(`[name=${name}]`);
      app.setConditions({
        m: of("m").checked,
        row: of("row").checked,
        write: of("write").checked,
        line: of("line").value,
        tensor: of("tensor").value
      });
    };
  }

  draw(conditions, trace) {
    if (this.trace !== trace) this.#fill(trace);
    for (const name of ["m", "row", "write"]) this.root.querySelector(`[name=${name}]`).checked = conditions[name];
    for (const name of ["line", "tensor"]) this.root.querySelector(`[name=${name}]`).value = conditions[name];
  }

  #fill(trace) {
    this.trace = trace;
    const lines = [...trace.stepsOfLine.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const text = (key) => {
      const [file, line] = key.split(":").map(Number);
      return `${line}: ${withoutComment(trace.files[file].lines[line - 1] ?? "").trim().slice(0, 60)}`;
    };
    this.root.querySelector("[name=line]").innerHTML =
        option("", "none") + lines.map((key) => option(key, text(key))).join("");
    this.root.querySelector("[name=tensor]").innerHTML =
        option("", "none") + trace.tensors.map((t) => option(t.name, t.name)).join("");
  }
}
