// The page of one socket: bars and rows select each other, the pointer's moment is shared with the table.

import { showMoment } from "./lib/chart.js";
import { momentOf, refreshParts, spanOf, wireCharts } from "./lib/ranged.js";
import { wireCopyButtons } from "./lib/copy.js";
import { queryOn, readState, withState } from "./lib/url.js";

const charts = wireCharts({ onSelect: (link, { dataset }) => (dataset.rows ? goToRows(dataset.rows, link) : select(link, true)), spanOf: (link) => spanOf(rowsOf(link)) }); // its row and its records

/** The page that has the rows of a chart's bars, where this is another one: the same range, the operation selected. */
function goToRows(url, selected) {
  const { from, to } = readState(location.search);
  location.assign(queryOn(url, { from, to, selected }) + "#timeline");
}

/** The rows of one operation: its own, and those of its records. */
function rowsOf(link, table = "main") {
  return [...document.querySelectorAll(`${table} tr[data-link]`)].filter((row) => row.dataset.link === link);
}

/** Mark one operation in the chart and in the tables; a second click on its bar takes the mark away. */
function select(link, fromChart) {
  const chosen = readState(location.search).selected === link && fromChart ? null : link;
  const changes = { selected: chosen };
  if (chosen && !rowsOf(chosen, "#records").length) changes.after = null; // the server turns to its records
  else changes.after = document.getElementById("events-part").dataset.turnedTo ?? new URLSearchParams(location.search).get("after");
  history.replaceState(null, "", location.pathname + withState(location.search, changes) + location.hash);
  mark(chosen, fromChart);
  if (differs(chosen)) refreshParts(charts).then(() => mark(readState(location.search).selected, fromChart));
}

/** Whether the server shows other rows with this selection: those of an operation below the first ones. */
function differs(chosen) {
  const { added } = document.getElementById("operations-part").dataset;
  if (added && added !== chosen) return true;
  return chosen !== null && ["#operations", "#records"].some((table) => !rowsOf(chosen, table).length);
}

function mark(link, scroll) {
  for (const row of document.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
  const rows = rowsOf(link);
  for (const row of rows) row.setAttribute("aria-selected", "true");
  if (scroll) rows[0]?.scrollIntoView({ block: "nearest" });
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
