"use strict";
// Numbers as the page reads and writes them.

/** JSON has no −∞, ∞ and NaN: the trace writes them as strings. */
function decoded(x) {
  if (typeof x === "number") return x;
  return x === "-inf" ? -Infinity : x === "inf" ? Infinity : NaN;
}

/** @returns {Float64Array} of an array of the trace; digits that say which fp32 it is become that fp32 */
function decodedAll(values, dtype) {
  return Float64Array.from(values, dtype === "fp64" ? decoded : (x) => Math.fround(decoded(x)));
}

const minus = (text) => text.replace(/-/g, "−");

/** Stands for −∞ as the maximum of nothing: the lowest finite number of fp32 or fp64. */
const isLowest = (x) => x < -3.4e38 && x !== -Infinity;

/** A value in a few characters: 0.7311, −∞, NaN, lowest. */
function shown(x, digits = 4) {
  if (Number.isNaN(x)) return "NaN";
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (isLowest(x)) return "lowest";
  const rounded = Number(x.toPrecision(digits)), size = Math.abs(rounded);
  return minus(
      size !== 0 && (size < 1e-4 || size >= 1e6) ? rounded.toExponential().replace("e+", "e") : String(rounded));
}

/** 12345 as 12,345. */
const grouped = (n) => minus((Math.round(n) || 0).toLocaleString("en-US"));  // −0 is 0

/** 12345 bytes as 12.1 KiB. */
function bytesShown(n) {
  if (n < 1024) return `${grouped(n)} B`;
  if (n < 1024 * 1024) return `${shown(n / 1024, 3)} KiB`;
  return `${shown(n / 1024 / 1024, 3)} MiB`;
}

const clamp = (x, most) => Math.max(0, Math.min(most, Math.trunc(Number(x)) || 0));

/** Half-open [a, b) as a–b−1. */
const rangeShown = ([a, b]) => (b - a === 1 ? `${a}` : `${a}–${b - 1}`);

const overlaps = ([a, b], [c, d]) => a < d && c < b;
const contains = ([a, b], i) => i >= a && i < b;

/** Text for HTML. */
const escaped = (text) =>
    String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" })[c]);
