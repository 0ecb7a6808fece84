// The page of one socket: bars and rows select each other, the pointer's moment is shared with the table.

import { showMoment } from "./lib/chart.js";
import { momentOf, wireCharts } from "./lib/ranged.js";
import { wireCopyButtons } from "./lib/copy.js";
import { readState, withState } from "./lib/url.js";

const charts = wireCharts({ onSelect: (link) => select(link, true) });

function rowOf(link) {
  return [...document.querySelectorAll("tr[data-link]")].find((row) => row.dataset.link === link) ?? null;
}

/** Mark one operation in the chart and in the table; a second time takes the mark away. */
function select(link, fromChart) {
  const chosen = readState(location.search).selected === link && fromChart ? null : link;
  history.replaceState(null, "", location.pathname + withState(location.search, { selected: chosen }) + location.hash);
  mark(chosen, fromChart);
}

function mark(link, scroll) {
  for (const row of document.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
  const row = link ? rowOf(link) : null;
  row?.setAttribute("aria-selected", "true");
  if (row && scroll) row.scrollIntoView({ block: "nearest" });
  for (const chart of charts) chart.select(link);
}

document.addEventListener("click", (event) => {
  const row = event.target.closest?.("tr[data-link]");
  if (row && !event.target.closest("a, button, input, summary") && !getSelection()?.toString()) select(row.dataset.link, false);
});
document.addEventListener("mouseover", (event) => {
  const ns = momentOf(event.target.closest?.("tbody tr"));
  if (ns !== null) showMoment(ns);
});
document.addEventListener("swapped", () => mark(readState(location.search).selected, false));

for (const chart of charts) chart.selected = readState(location.search).selected;
mark(readState(location.search).selected, false);
wireCopyButtons();
