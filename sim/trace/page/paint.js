// How cells look: colours of values, hatches of what is masked, gone, not final or unwritten, outlines of what moves.

/** The page's colours, read from the style sheet's variables once per theme. */
class Palette {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    Object.assign(this, {
      ink: of("ink"),
      muted: of("muted"),
      paper: of("pane"),
      line: of("line"),
      read: of("read"),
      write: of("write"),
      pick: of("pick"),
      mma: of("mma"),
      global: of("global"),
      shared: of("shared"),
      other: of("other"),
      negative: rgbOf(of("negative")),
      zero: rgbOf(of("zero")),
      positive: rgbOf(of("positive")),
      nan: rgbOf(of("nan")),
      hidden: rgbOf(of("hidden")),
      empty: rgbOf(of("empty")),
    });
    this.hatches = {
      masked: hatch(this.muted, 5, [[0, 5, 5, 0]]),
      stale: hatch(this.ink, 9, [[0, 0, 9, 9]]),
      gone: hatch(this.line, 8, [[0, 0, 8, 8], [0, 8, 8, 0]]),
      empty: hatch(this.line, 6, [], 1.2),
    };
  }

  /** Monotone in brightness, so that it survives grey: dark blue −1, neutral 0, light orange +1. */
  ofValue(x, scale) {
    if (Number.isNaN(x)) return this.nan;
    if (x === -Infinity || isLowest(x)) return this.hidden;
    const t = scale > 0 ? Math.max(-1, Math.min(1, x / scale)) : 0, to = t < 0 ? this.negative : this.positive;
    const s = Math.sqrt(Math.abs(t));
    return [0, 1, 2].map((k) => Math.round(this.zero[k] + s * (to[k] - this.zero[k])));
  }
}

function rgbOf(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

const isDark = ([r, g, b]) => 0.3 * r + 0.59 * g + 0.11 * b < 140;

/** A pattern of lines or of a dot in a square. */
function hatch(color, size, lines, dot = 0) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const g = canvas.getContext("2d");
  g.strokeStyle = g.fillStyle = color;
  g.lineWidth = 1;
  for (const [x0, y0, x1, y1] of lines) {
    g.beginPath();
    for (const shift of [-size, 0, size]) g.moveTo(x0 + shift, y0), g.lineTo(x1 + shift, y1);
    g.stroke();
  }
  if (dot) g.fillRect(size / 2, size / 2, dot, dot);
  return g.createPattern(canvas, "repeat");
}

/** A canvas as large as its element, in device pixels; drawn on in CSS pixels. */
function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = canvas;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return g;
}

/**
 * Cells [rows, cols] from (x, y) on, cw × ch each. colorOf(r, c) → [r, g, b] or null for an empty cell.
 * One pixel a cell, then enlarged: fast for any size.
 */
const scratch = document.createElement("canvas");
function paintCells(g, { x, y, cw, ch, rows, cols }, colorOf) {
  if (rows === 0 || cols === 0) return;
  const image = new ImageData(cols, rows);
  for (let r = 0, k = 0; r < rows; ++r)
    for (let c = 0; c < cols; ++c, k += 4) {
      const color = colorOf(r, c);
      if (color)
        (image.data[k] = color[0]), (image.data[k + 1] = color[1]), (image.data[k + 2] = color[2]),
            (image.data[k + 3] = 255);
    }
  scratch.width = cols;
  scratch.height = rows;
  scratch.getContext("2d").putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(scratch, 0, 0, cols, rows, x, y, cols * cw, rows * ch);
}

/** Numbers in cells that are large enough to hold them. */
function paintNumbers(g, { x, y, cw, ch, rows, cols }, valueOf, colorOf) {
  if (cw < 26 || ch < 13) return;
  const digits = cw < 38 ? 2 : 3;
  g.font = `${Math.min(13, Math.floor(cw / 3), Math.floor(ch * 0.7))}px ${numberFont}`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.lineWidth = 3;
  g.lineJoin = "round";
  for (let r = 0; r < rows; ++r)
    for (let c = 0; c < cols; ++c) {
      const v = valueOf(r, c);
      if (v === undefined) continue;
      const color = colorOf(r, c), text = isLowest(v) ? "low" : shown(v, digits),
            at = [x + (c + 0.5) * cw, y + (r + 0.5) * ch];
      g.strokeStyle = `rgb(${color})`;  // clears the hatch behind the digits
      g.strokeText(text, ...at, cw - 2);
      g.fillStyle = isDark(color) ? "#fff" : "#111";
      g.fillText(text, ...at, cw - 2);
    }
}

const numberFont = "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace";
const labelFont = "600 12px system-ui, 'DejaVu Sans', sans-serif";

function paintGrid(g, { x, y, w, h, cw, ch, rows, cols }, color) {
  if (cw < 7 || ch < 7) return;
  g.strokeStyle = color;
  g.lineWidth = 0.5;
  g.beginPath();
  for (let r = 1; r < rows; ++r) g.moveTo(x, y + r * ch), g.lineTo(x + w, y + r * ch);
  for (let c = 1; c < cols; ++c) g.moveTo(x + c * cw, y), g.lineTo(x + c * cw, y + h);
  g.stroke();
}

/** A frame around a part, with a letter at its right: solid or dashed, so that it is told apart without colour. */
function paintFrame(g, { x, y, w, h }, { color, width = 2, dash = [], letter = "", paper }) {
  g.save();
  g.strokeStyle = color;
  g.lineWidth = width;
  g.setLineDash(dash);
  g.strokeRect(x - width / 2, y - width / 2, w + width, h + width);
  if (letter) {
    g.fillStyle = color;
    g.fillRect(x + w + width - 1, y - width, 13, 13);
    g.fillStyle = paper;
    g.font = "700 10px system-ui, 'DejaVu Sans', sans-serif";
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.fillText(letter, x + w + width + 5.5, y - width + 7);
  }
  g.restore();
}
