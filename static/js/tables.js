// Tables on every page: a row leads where its first link leads, and the keyboard goes up and down the rows.

import { goal, moveIn } from "./lib/rows.js";

const linkIn = (row) => row?.querySelector("td.keep a[href]") ?? row?.querySelector("td a[href]") ?? null;
const isPicked = (row) => row.hasAttribute("data-link"); // selects its bar in a chart instead
const rowsOf = (row) => [...row.parentElement.rows];

/** What takes the focus of a row: its link, else the row itself. */
function focusRow(row) {
  const target = linkIn(row) ?? row;
  if (target === row) row.tabIndex = -1;
  target.focus();
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const row = event.target.closest?.("main table.list tbody tr");
  if (!row || event.target.matches("input, select, textarea, summary")) return;
  if (event.key === "Enter") {
    if (event.target === row) (isPicked(row) ? row : linkIn(row))?.click();
    return;
  }
  const rows = rowsOf(row);
  const next = moveIn(rows.length, rows.indexOf(row), event.key);
  if (next === null) return;
  event.preventDefault();
  focusRow(rows[next]);
});

/** A click beside the links of a row; null where it means something else. */
function rowLink(event) {
  const row = event.target.closest?.("main table.list tbody tr");
  if (!row || isPicked(row) || event.defaultPrevented) return null;
  if (event.target.closest("a, button, input, select, summary, details, label") || getSelection()?.toString()) return null;
  return linkIn(row);
}

for (const kind of ["click", "auxclick"]) {
  document.addEventListener(kind, (event) => {
    const where = goal(event);
    const link = where && rowLink(event);
    if (!link || document.querySelector(".note-new[open]")) return;
    if (where === "here") location.assign(link.href);
    else window.open(link.href, "_blank", "noopener");
  });
}

// Rows that lead somewhere show it under the pointer.
for (const table of document.querySelectorAll("main table.list")) {
  if (linkIn(table.tBodies[0]?.rows[0])) table.classList.add("leads");
}
