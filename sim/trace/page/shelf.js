// Of a kernel: what is in shared memory and in registers, beside the attention picture.

/** The arrays in shared memory and what the step's warp watches in registers. @returns their boxes */
function drawShelf(g, picture, left, height) {
  const { state, step, palette, trace } = picture, lane = step?.lane ?? 0;
  const shared = [...state.tiles.values()].filter((t) => t.space !== "registers");
  const registers = [...state.tiles.values()].filter((t) => t.space === "registers" && (t.lane ?? 0) === lane);
  const width = picture.canvas.clientWidth - left - 4, boxes = [];
  let top = 0;
  const groups = [["shared memory", shared], [`registers of warp ${trace.lanes[lane]?.warp ?? lane}`, registers]];
  for (const [title, tiles] of groups) {
    g.font = labelFont;
    g.fillStyle = palette.muted;
    g.textAlign = "left";
    g.fillText(tiles.length ? title : `${title}: nothing yet`, left, top + 11);
    const room = (tiles === shared ? 0.62 : 0.38) * height - 20;
    for (const box of shelved(tiles, width, room)) boxes.push({...box, x: box.x + left, y: box.y + top + 16 });
    top += room + 20;
  }
  for (const box of boxes) drawShelved(g, box, picture);
  return boxes;
}

/** Tiles in rows, as large as they fit. */
function shelved(tiles, width, height) {
  for (let cell = 16; cell > 0.2; cell *= 0.88) {
    const boxes = flowed(tiles, width, cell), last = boxes.at(-1);
    if (!last || Math.max(...boxes.map((b) => b.y + b.h)) <= height) return boxes;
  }
  return [];
}

function flowed(tiles, width, cell) {
  const boxes = [];
  let x = 0, y = labelHeight, tallest = 0;
  for (const tile of tiles) {
    const rows = tile.rows[1] - tile.rows[0], cols = tile.cols[1] - tile.cols[0], least = 14;  // px of a side
    const cw = Math.max(cell, least / cols), ch = Math.max(cell, least / rows);
    const w = cols * cw, h = rows * ch, advance = Math.max(w, 8 * tile.name.length) + 8;
    if (x > 0 && x + advance > width) (x = 0), (y += tallest + labelHeight + 4), (tallest = 0);
    boxes.push({ tile, name: tile.name, x, y, w, h, rows, cols, cw, ch, turned: false });
    x += advance;
    tallest = Math.max(tallest, h);
  }
  return boxes.some((b) => b.w > width) ? [{ y: Infinity, h: 0 }] : boxes;
}

function drawShelved(g, box, { palette, step, trace }) {
  const { tile } = box, scale = trace.scale[baseName(tile.name)] ?? 0;
  g.font = labelFont;
  g.fillStyle = palette.ink;
  g.fillText(box.name, box.x, box.y - 3);
  g.fillStyle = palette.hatches.empty;
  g.fillRect(box.x, box.y, box.w, box.h);
  paintCells(g, box, (r, c) => valueIn(tile, r, c), palette, scale);
  paintGrid(g, box, palette.line);
  const changes = step?.changes?.some((c) => c.tile === tile.id);
  paintFrame(
      g, box,
      changes ? written(palette) :
                { color: palette.ink, width: 1 });
}
