// When and how a page of a growing trace is brought up to date; without a document, so that it can be tried without one.

const LEAST_PAUSE_MS = 1500;
const TIMES = 8;

/** How long to wait after bringing the page up to date took so long: it may take no more than a ninth of the time. */
export function pauseAfter(tookMs) {
  return Math.max(LEAST_PAUSE_MS, TIMES * tookMs);
}

/** The path of the same view in another trace. */
export function inTrace(pathname, base, from, to) {
  const before = `${base}/t/${from}`;
  return pathname === before || pathname.startsWith(`${before}/`) ? `${base}/t/${to}${pathname.slice(before.length)}` : `${base}/t/${to}`;
}

/** How far to scroll so that what was at one height of the window stands there again. */
export function scrolled(before, after) {
  return before === null || after === null ? 0 : Math.round(after - before);
}

/** What an element is known by in the next state of the page: [selector, value] pairs in the order in which they are tried; `of(name)` reads an attribute. */
export function namesOf(of) {
  const found = [];
  for (const name of ["id", "data-link", "href", "name", "data-ns"]) {
    const value = of(name);
    if (value) found.push([name, value]);
  }
  return found;
}
