// What a figure gives up where it has little width: margins and labels make room for the plot.

/** Narrower than so many pixels, a figure is drawn so. */
export const NARROW = 560;

const MARGIN = 58;
const CHARACTER = 7;

/** The left margin that the labels of the vertical axes need; their text is never cut. */
function labelRoom(layout) {
  const labels = Object.entries(layout).flatMap(([key, axis]) => (key.startsWith("yaxis") ? (axis.ticktext ?? []) : []));
  return Math.max(MARGIN, ...labels.map((label) => label.length * CHARACTER + 8));
}

/** A layout for a narrow place; the given one stays as it is. */
export function narrowed(layout) {
  const made = { ...layout };
  made.margin = { ...layout.margin, l: Math.min(layout.margin.l, labelRoom(layout)), r: 8 };
  made.font = { ...layout.font, size: 10 };
  for (const [key, axis] of Object.entries(layout)) {
    if (/^[xy]axis/.test(key)) made[key] = { ...axis, nticks: key[0] === "x" ? 4 : 3 };
  }
  const { tickvals, ticktext } = layout.xaxis ?? {};
  if (tickvals) {
    const kept = (_, place) => place % 3 === 1; // names of the wall clock's times are long
    Object.assign(made.xaxis, { tickvals: tickvals.filter(kept), ticktext: ticktext.filter(kept) });
  }
  return made;
}
