import assert from "node:assert/strict";
import { test } from "node:test";

import { linkOf, outline, outlineInBand, pointOf } from "../../static/js/lib/pick.js";
import { themed } from "../../static/js/lib/theme.js";

const data = [
  { type: "scatter", customdata: ["text alone"] },
  { type: "bar", orientation: "h", base: [0, 4], x: [1, 2], y: [0.25, 1.25], width: [0.4, 0.4], yaxis: "y2", meta: { selects: true }, customdata: [["send:0x1@0", "…"], ["recv:0x2@4", "…"]] },
];

test("names of colours become the theme's values, everywhere in a figure, and the figure itself stays", () => {
  const figure = { data: [{ marker: { color: ["var(--send)", "#fff"] } }], layout: { title: "var(--send) in a sentence" } };
  const values = { "--send": "#D55E00" };
  assert.deepEqual(themed(figure, (name) => values[name]), {
    data: [{ marker: { color: ["#D55E00", "#fff"] } }],
    layout: { title: "var(--send) in a sentence" },
  });
  assert.equal(figure.data[0].marker.color[0], "var(--send)");
  assert.equal(themed("var(--absent)", () => ""), "currentcolor");
});

test("a link finds its point", () => {
  assert.deepEqual(pointOf(data, "recv:0x2@4"), { trace: 1, point: 1 });
  assert.equal(pointOf(data, "recv:0x2@5"), null);
});

test("a clicked point names its object only where it stands for one", () => {
  assert.equal(linkOf({ data: data[1], customdata: data[1].customdata[0] }), "send:0x1@0");
  assert.equal(linkOf({ data: { meta: undefined }, customdata: ["12", "an abort"] }), null);
});

test("the outline of a selected bar encloses it", () => {
  const shape = outline(data, { trace: 1, point: 1 }, "#000");
  assert.deepEqual([shape.x0, shape.x1, shape.yref], [4, 6, "y2"]);
  assert.ok(shape.y0 < 1.05 && shape.y1 > 1.45);
  assert.equal(outline(data, { trace: 0, point: 0 }, "#000"), null);
});

test("in a band an operation is outlined from its post to its end, over the whole height", () => {
  const band = [{ name: "fewest" }, { name: "most", yaxis: "y2", meta: { holds: "operations" } }];
  const meta = { base_ns: "1000", unit_ns: "1000000" };
  const shape = outlineInBand(band, { from: 2_001_000n, to: 4_001_000n }, meta, "#000");
  assert.deepEqual([shape.x0, shape.x1, shape.yref, shape.y0, shape.y1], [2, 4, "y2 domain", 0, 1]);
  assert.equal(outlineInBand(data, { from: 0n, to: 1n }, meta, "#000"), null);
});
