// Pages of a trace that is still being recorded: when there is more, the page is brought up to date around the reader, who stays where he is.

import { inTrace, namesOf, pauseAfter, scrolled } from "./lib/live.js";

const { base, trace } = document.body.dataset;
const bar = () => document.getElementById("live");
// Parts that have a state of their own: they stay as they are, and go into the new page in the place of their like.
const KEPT = ["[data-chart][id]", ".heading .view", "details.note-new"];

let source = null;
let since = bar()?.dataset.since ?? "";
let isStale = false;
let isWorking = false;
let notBefore = 0;
let timer = 0;

function listen() {
  if (source || document.hidden || bar()?.dataset.state !== "live") return;
  const url = new URL(bar().dataset.stream, location.href);
  url.searchParams.set("since", since);
  source = new EventSource(url);
  source.addEventListener("grown", () => {
    isStale = true;
    soon();
  });
  source.addEventListener("ended", (event) => {
    leave();
    const { key } = JSON.parse(event.data);
    if (key) sayEnded(key);
    else {
      isStale = true;
      soon();
    }
  });
}

/** A hidden page holds no connection: a browser has few of them for one server. */
function leave() {
  source?.close();
  source = null;
}

/** Whether the reader is at something that a change of the page would take away. */
function isBusy() {
  const at = document.activeElement;
  if (at?.matches("input:not([type=hidden]), textarea, select") && document.getElementById("content").contains(at)) return true;
  return Boolean(getSelection()?.toString()) || Boolean(document.querySelector("[aria-busy]")) || isPressed;
}

let isPressed = false;
addEventListener("pointerdown", () => (isPressed = true), true);
for (const kind of ["pointerup", "pointercancel", "blur"]) addEventListener(kind, () => (isPressed = false), true);

function soon() {
  clearTimeout(timer);
  if (!isStale || isWorking) return;
  const wait = notBefore - performance.now();
  if (wait > 0) timer = setTimeout(soon, wait);
  else if (document.hidden) return;
  else if (isBusy()) {
    const more = bar()?.querySelector(".more");
    if (more) more.hidden = false;
    timer = setTimeout(soon, 1000);
  } else refresh();
}

async function refresh() {
  isStale = false;
  isWorking = true;
  const began = performance.now();
  try {
    const asked = location.href;
    const answer = await fetch(asked, { headers: { Accept: "text/html" }, cache: "no-store" });
    const isSame = answer.ok && !answer.redirected && asked === location.href;
    const page = isSame ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    if (page && isBusy()) isStale = true;
    else if (page) await take(page);
  } catch {
    isStale = true; // the server is away: the stream says when it is back
    notBefore = performance.now() + 5000;
  }
  isWorking = false;
  notBefore = Math.max(notBefore, performance.now() + pauseAfter(performance.now() - began));
  soon();
}

/** Put the new state in the place of the old one. */
async function take(page) {
  const old = document.getElementById("content");
  const fresh = document.adoptNode(page.getElementById("content"));
  const place = placeOf(old);
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const opened = [...old.querySelectorAll("details")].map((one) => one.open);
  const sideways = [...old.querySelectorAll("*")].filter((one) => one.scrollLeft || one.scrollTop).map((one) => [one, one.scrollLeft, one.scrollTop]);
  for (const [number, one] of [...fresh.querySelectorAll("details")].entries()) one.open = opened[number] ?? one.open;
  const ids = new Map(sideways.map(([one, left, top]) => [findIn(fresh, one), [left, top]]));
  const nextFocus = focus ? findIn(fresh, focus) : null;
  for (const selector of KEPT) {
    const likes = [...fresh.querySelectorAll(selector)];
    for (const [number, kept] of [...old.querySelectorAll(selector)].entries()) {
      const like = kept.id ? likes.find((one) => one.id === kept.id) : likes[number];
      if (!like) continue;
      for (const { name, value } of [...like.attributes]) if (name.startsWith("data-") || name === "aria-label") kept.setAttribute(name, value);
      like.replaceWith(kept);
    }
  }
  old.replaceWith(fresh);
  swapAside(page, ".trust", fresh);
  swapAside(page, "#live", fresh);
  since = bar()?.dataset.since || since;
  document.title = page.title || document.title;
  if (nextFocus) nextFocus.focus({ preventScroll: true });
  const waits = [];
  document.dispatchEvent(new CustomEvent("grown", { detail: { waits } }));
  document.dispatchEvent(new CustomEvent("swapped"));
  for (const [one, [left, top]] of ids) one?.scrollTo({ left, top, behavior: "instant" });
  restore(place);
  await Promise.all(waits);
  restore(place);
  if (bar()?.dataset.state !== "live") leave();
}

/** Something beside the content that is there or not. */
function swapAside(page, selector, content) {
  const old = document.querySelector(`aside${selector}`);
  const fresh = page.querySelector(`aside${selector}`);
  if (old && fresh) old.replaceWith(document.adoptNode(fresh));
  else if (fresh) content.before(document.adoptNode(fresh));
  else old?.remove();
}

/** The element of the new state that stands for one of the old. */
function findIn(root, element) {
  for (const [name, value] of namesOf((key) => element.getAttribute(key))) {
    const found = root.querySelector(`${element.tagName}[${name}="${CSS.escape(value)}"]`);
    if (found) return found;
  }
  return null;
}

/** What the reader looks at: the first thing with a name below the top of the window, and its height; and the window's own position. */
function placeOf(root) {
  const position = { left: scrollX, top: scrollY };
  if (scrollY < 1) return { position, element: null, height: null };
  for (const element of root.querySelectorAll("tr[data-link], tr[data-ns], td.keep a[href], h2[id], section[id], [data-chart][id]")) {
    const { top } = element.getBoundingClientRect();
    if (top >= 0 && top < innerHeight) return { position, element, height: top };
  }
  return { position, element: null, height: null };
}

function restore({ position, element, height }) {
  const now = element?.isConnected ? element : element && findIn(document.getElementById("content"), element);
  if (!now) return scrollTo({ ...position, behavior: "instant" });
  scrollBy({ top: scrolled(height, now.getBoundingClientRect().top), behavior: "instant" });
}

/** The session has ended, and its whole trace is there: the reader goes there when he likes, to the same view. */
function sayEnded(key) {
  const link = document.createElement("a");
  const there = () => inTrace(location.pathname, base, trace, key) + location.search + location.hash;
  link.href = there();
  link.addEventListener("pointerdown", () => (link.href = there()));
  link.textContent = "Show the whole trace";
  const said = document.createElement("strong");
  said.textContent = "The session has ended.";
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  line.append(said, " This page shows it as it was before. ", link);
  const element = bar();
  element.dataset.state = "ended";
  element.replaceChildren(line);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) leave();
  else {
    listen();
    soon();
  }
});
addEventListener("pagehide", leave);
addEventListener("pageshow", listen);
listen();
