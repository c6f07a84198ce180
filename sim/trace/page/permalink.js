// The address: #step=57&row=2&cell=O.2.1&… says where the page is, so that a link shows what its sender saw.

const cellText = (cell) =>
    (cell ? [cell.tile === undefined ? cell.name : `${cell.name}@${cell.tile}`, cell.i, cell.j].join(".") : "");

function cellFrom(text) {
  const parts = text?.match(/^([^.@]+)(?:@(\d+))?\.(\d+)\.(\d+)$/);
  if (!parts) return null;
  const [, name, tile, i, j] = parts;
  return { name, ...(tile !== undefined && { tile: Number(tile) }), i: Number(i), j: Number(j) };
}

/** What of the page's state is not as at the start. */
function addressOf(app) {
  const fields = new URLSearchParams();
  app.views.forEach((view, k) => {
    const suffix = k ? "2" : "";
    fields.set(`step${suffix}`, view.count);
    if (view.chosenRow !== null) fields.set(`row${suffix}`, view.chosenRow);
    if (view.cell) fields.set(`cell${suffix}`, cellText(view.cell));
    if (!view.followsHead) fields.set(`head${suffix}`, `${view.batch}.${view.head}`);
  });
  if (isAny(app.conditions)) fields.set("break", conditionsText(app.conditions));
  if (app.theme) fields.set("theme", app.theme);
  if (app.views.length > 1 && !app.isLocked) fields.set("lock", "off");
  if (app.tab !== "code") fields.set("view", app.tab);
  return `#${fields.toString().replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%40/g, "@")}`;
}

function restoreFromAddress(app) {
  const fields = new URLSearchParams(location.hash.slice(1));
  const whole = (text, most) => Math.max(0, Math.min(most, Math.trunc(Number(text)) || 0));
  app.isLocked = fields.get("lock") !== "off";
  app.tab = fields.get("view") ?? "code";
  app.conditions = conditionsFrom(fields.get("break") ?? "");
  app.theme = ["light", "dark"].includes(fields.get("theme")) ? fields.get("theme") : "";
  app.views.forEach((view, k) => {
    const get = (name) => fields.get(k ? `${name}2` : name);
    const { batch, heads, n_q: nq } = view.trace.problem;
    view.count = whole(get("step"), view.trace.length);
    view.chosenRow = get("row") === null ? null : whole(get("row"), Math.max(0, nq - 1));
    view.cell = cellFrom(get("cell"));
    const head = get("head")?.match(/^(\d+)\.(\d+)$/);
    view.followsHead = !head;
    if (k && app.isLocked && get("step") === null)
      view.count = partnerCount(app.views[0].trace, app.views[0].count, view.trace);
    if (head) (view.batch = whole(head[1], batch - 1)), (view.head = whole(head[2], heads - 1));
  });
}
