// Which point of a figure stands for which object, and the outline that shows it as selected.

import { positionOf } from "./time.js";

/** The trace and point that carry a link as the first part of their `customdata`; null when none does. */
export function pointOf(data, link) {
  for (const [trace, { customdata }] of data.entries()) {
    if (!Array.isArray(customdata)) continue;
    const point = customdata.findIndex((item) => Array.isArray(item) && item[0] === link);
    if (point >= 0) return { trace, point };
  }
  return null;
}

/** The link behind a clicked point; null where the point stands for no object. */
export function linkOf(point) {
  const selects = point?.data?.meta?.selects;
  return selects && Array.isArray(point.customdata) ? point.customdata[0] : null;
}

/** The outline around a horizontal bar, as a shape of the layout. */
export function outline(data, { trace, point }, colour) {
  const bars = data[trace];
  if (bars.type !== "bar" || bars.orientation !== "h") return null;
  const half = (Array.isArray(bars.width) ? bars.width[point] : bars.width ?? 0.8) / 2 + 0.04;
  return {
    name: "selected",
    type: "rect",
    xref: bars.xaxis ?? "x",
    yref: bars.yaxis ?? "y",
    x0: bars.base[point],
    x1: bars.base[point] + bars.x[point],
    y0: bars.y[point] - half,
    y1: bars.y[point] + half,
    line: { color: colour, width: 2 },
    layer: "above",
  };
}

/** The outline of an operation in a band that stands for all of them, from its post to its end; null where the figure has no such band. */
export function outlineInBand(data, { from, to }, meta, colour) {
  const band = data.find((trace) => trace.meta?.holds === "operations");
  if (!band || !meta) return null;
  const xref = band.xaxis ?? "x";
  const yref = `${band.yaxis ?? "y"} domain`;
  return { name: "selected", type: "rect", xref, yref, x0: positionOf(from, meta), x1: positionOf(to, meta), y0: 0, y1: 1, line: { color: colour, width: 2 }, layer: "above" };
}
