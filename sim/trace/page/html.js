// Tables as HTML text.

const td = (text = "—") => `<td>${text}</td>`;
const columnHead = (text) => `<th scope="col">${text}</th>`;
const rowHead = (text, title = "") => `<th scope="row" title="${escaped(title)}">${text}</th>`;
const tr = (...cells) => `<tr>${cells.flat().join("")}</tr>`;

/** @param head texts above the columns, the first column's (of the rows' heads) not among them */
function tableHtml({ caption = "", name = "", corner = "<td></td>", head, rows }) {
  const title = caption && `<caption class="muted">${caption}</caption>`;
  const body = `<thead>${tr(corner, head.map(columnHead))}</thead><tbody>${rows.join("")}</tbody>`;
  return `<table class="${name}">${title}${body}</table>`;
}

const option = (value, text = value) => `<option value="${escaped(value)}">${escaped(text)}</option>`;

/** A button that goes to a step. */
const stepButton = (count, text, title = `Go to step ${count}`) =>
    `<button data-step="${count}" title="${title}">${text}</button>`;
