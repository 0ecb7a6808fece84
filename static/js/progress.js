// A page of something that is being collected: how far it has come is brought up to date in place, so that what has the focus stays.

import { pageAt } from "./lib/page.js";

const PARTS = ["#progress", "#known", ".heading .sentence"];

/** How long to wait before asking again; 0 where it is over. */
const pause = (root) => 1000 * Number(root.getElementById("progress")?.dataset.reload ?? 0);

async function follow() {
  try {
    const { answer, page } = await pageAt(location.href);
    if (answer.redirected) return location.replace(answer.url);
    if (!pause(page)) return location.reload();
    for (const part of PARTS) document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
  } catch {
    // the server is away: it is asked again
  }
  setTimeout(follow, pause(document));
}

if (pause(document)) setTimeout(follow, pause(document));
