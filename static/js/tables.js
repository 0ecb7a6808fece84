// Tables on every page: a row leads where its first link leads, and the keyboard goes up and down the rows.

import { goal, moveIn } from "./lib/rows.js";

const ROW = "main table.list tbody tr";
const DOUBLE_CLICK_MS = 220;

const linkIn = (row) => row?.querySelector("td.keep a[href]") ?? row?.querySelector("td a[href]") ?? null;

/** Rows that select their bar in a chart lead nowhere themselves. */
const isPicked = (row) => row.hasAttribute("data-link");

/** What takes the focus of a row: its link, else the row itself. */
const holderOf = (row) => (isPicked(row) ? row : (linkIn(row) ?? row));

function focusRow(row) {
  const holder = holderOf(row);
  if (holder === row) row.tabIndex = -1;
  holder.focus();
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const row = event.target.closest?.(ROW);
  if (!row || event.target.matches("input, select, textarea, summary")) return;
  if (event.key === "Enter") {
    if (event.target === row && isPicked(row)) row.click();
    return;
  }
  const rows = [...row.parentElement.rows];
  const next = moveIn(rows.length, rows.indexOf(row), event.key);
  if (next === null) return;
  event.preventDefault();
  focusRow(rows[next]);
});

/** The link for a click beside the links of a row; null where the click means something else, such as text being selected. */
function linkFor(event) {
  const row = event.target.closest?.(ROW);
  if (!row || isPicked(row) || event.defaultPrevented || document.querySelector(".note-new[open]")) return null;
  if (event.target.closest("a, button, input, select, summary, label") || getSelection()?.toString()) return null;
  return linkIn(row);
}

let waiting = 0;

for (const kind of ["click", "auxclick"]) {
  document.addEventListener(kind, (event) => {
    clearTimeout(waiting); // the second click of two selects a word
    const where = goal(event);
    const link = where && event.detail < 2 ? linkFor(event) : null;
    if (!link) return;
    if (where === "beside") window.open(link.href, "_blank", "noopener");
    else waiting = setTimeout(() => !getSelection()?.toString() && location.assign(link.href), DOUBLE_CLICK_MS);
  });
}

/** Rows that lead somewhere show it under the pointer; a table whose rows have no link of their own is entered at its first row. */
function prepare() {
  for (const table of document.querySelectorAll("main table.list")) {
    const first = table.tBodies[0]?.rows[0];
    if (!first) continue;
    if (holderOf(first) === first) first.tabIndex = 0;
    else table.classList.add("leads");
  }
}

prepare();
document.addEventListener("swapped", prepare);
