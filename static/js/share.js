// "Copy link" on every page of a trace, and moments of records for the form of a note.

import { linkOf } from "./lib/share.js";
import { withState } from "./lib/url.js";

const link = document.querySelector("a[data-share]");
const button = document.querySelector("button[data-share]");

if (link) {
  // Copying from the browser's own menu gives the view as it is now, too.
  for (const event of ["pointerdown", "focus", "contextmenu"]) link.addEventListener(event, () => (link.href = linkOf(link.href, location)));
}
if (link && button && navigator.clipboard) {
  const said = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(linkOf(link.href, location));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = said), 1500);
  });
}

// The switch of the clock keeps what scripts have changed since the page was loaded.
for (const face of document.querySelectorAll("a[data-clock]")) {
  for (const event of ["pointerdown", "focus", "contextmenu"]) {
    face.addEventListener(event, () => (face.href = location.pathname + withState(location.search, { clock: face.dataset.clock || null }) + location.hash));
  }
}

// While the form of a note is open, a click on a record takes its moment.
const moment = document.querySelector(".note-new .note-form input[name=t_ns]");
if (moment) {
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("tr[data-ns]");
    if (row && moment.closest("details").open) moment.value = row.dataset.ns;
  });
}
