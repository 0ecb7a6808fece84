import assert from "node:assert/strict";
import test from "node:test";

import { narrowed } from "../../static/js/lib/narrow.js";

test("short labels give their room to the plot", () => {
  const layout = { margin: { l: 90, r: 16, t: 4, b: 46 }, font: { size: 12 }, xaxis: {}, yaxis: { ticktext: ["life"] }, yaxis2: {} };
  const made = narrowed(layout);
  assert.deepEqual(made.margin, { l: 58, r: 8, t: 4, b: 46 });
  assert.deepEqual([made.xaxis.nticks, made.yaxis.nticks, made.yaxis2.nticks], [4, 3, 3]);
  assert.equal(layout.margin.l, 90);
});

test("addresses keep the margin that they need", () => {
  const layout = { margin: { l: 140, r: 16 }, xaxis: {}, yaxis: { ticktext: ["0x2d377108740", "0x2d377100740"] } };
  assert.equal(narrowed(layout).margin.l, 13 * 7 + 8);
  assert.equal(narrowed({ ...layout, margin: { l: 60, r: 16 } }).margin.l, 60);
});

test("of the names of the wall clock's times every third is kept", () => {
  const layout = { margin: { l: 90, r: 16 }, xaxis: { tickvals: [0, 1, 2, 3, 4], ticktext: ["a", "b", "c", "d", "e"] } };
  const { xaxis } = narrowed(layout);
  assert.deepEqual([xaxis.tickvals, xaxis.ticktext], [[1, 4], ["b", "e"]]);
});
