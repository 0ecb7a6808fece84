// A page whose chart chooses the range that the rest of the page answers for.

import { Chart, drawWhenSeen, fail, figureOf } from "./chart.js";
import { pageAt } from "./page.js";
import { parseNs } from "./time.js";
import { queryOn, readState, withState } from "./url.js";

/**
 * Wire the charts of the page. A chart element is `[data-chart]` with an id; its figure is in the script `ID-figure`, or, where it is large,
 * only behind `data-url`. That gives the figure of any range as JSON; `data-ranges` lets a drag choose the page's range.
 * Parts of the page that answer for the range are `[data-follows="range"]` with an id.
 *
 * @param {{onSelect?: Function, spanOf?: Function}} handlers `onSelect(link, element)`, the element being the chart's
 * @returns {Chart[]}
 */
export function wireCharts(handlers = {}) {
  const charts = [];
  const wire = (element, root) => {
    const figure = figureOf(element.id, root);
    if (!figure && !element.dataset.url) return;
    const ranges = element.hasAttribute("data-ranges");
    const chart = new Chart(element, figure, {
      onLoad: () => load(element, readState(location.search)),
      onRange: ranges ? (from, to) => go({ from, to }, charts) : null,
      onReset: ranges ? () => go({ from: null, to: null }, charts) : null,
      onSelect: (link) => handlers.onSelect?.(link, element),
      spanOf: ranges ? handlers.spanOf : null,
    });
    charts.push(chart);
    drawWhenSeen(chart);
  };
  for (const element of document.querySelectorAll("[data-chart]")) wire(element, document);
  document.addEventListener("grown", ({ detail }) => {
    for (const element of document.querySelectorAll("[data-chart]")) {
      const chart = charts.find((one) => one.element === element);
      if (!chart) wire(element, document);
      else if (chart.drawn) detail.waits.push(redrawGrown(chart));
      else chart.figure = figureOf(element.id);
    }
  });
  if (charts.some((chart) => chart.element.hasAttribute("data-ranges"))) {
    addEventListener("popstate", () => show(charts));
    document.addEventListener("click", (event) => followRangeLink(event, charts));
  }
  return charts;
}

/** Links to another range of the same page change it in place. */
function followRangeLink(event, charts) {
  const link = event.target.closest?.("a[data-range]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const { from, to } = readState(link.search);
  go({ from, to }, charts);
}

function go(changes, charts) {
  history.pushState(null, "", location.pathname + withState(location.search, changes));
  return show(charts);
}

let latest = 0;

/** Bring the charts and the parts that follow the range to the state of the address bar. */
async function show(charts) {
  const mine = ++latest;
  const busy = document.querySelectorAll("[data-follows='range'], [data-ranges]");
  for (const element of busy) element.setAttribute("aria-busy", "true");
  const range = readState(location.search);
  const drawn = charts.filter((chart) => chart.element.dataset.url).map((chart) => redraw(chart, range, mine));
  await Promise.all([...drawn, swapParts(charts, () => mine === latest)]);
  if (mine === latest) for (const element of document.querySelectorAll("[aria-busy]")) element.removeAttribute("aria-busy");
}

/** The figure of a range, from the server. */
async function load(element, { from, to }) {
  const answer = await fetch(queryOn(element.dataset.url, { from, to, format: "json" }), { headers: { Accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.sentence ?? answer.statusText);
  return body.figure;
}

async function redraw(chart, range, mine) {
  try {
    const figure = await load(chart.element, range);
    if (mine === latest) await chart.draw(figure);
  } catch (error) {
    if (mine === latest) fail(chart.element, error);
  }
}

/** The same chart of a trace that has grown. */
async function redrawGrown(chart) {
  const mine = latest;
  const range = readState(location.search);
  const figure = chart.element.dataset.url ? null : figureOf(chart.element.id);
  if (figure) await chart.draw(figure);
  else if (chart.element.dataset.url) await redraw(chart, range, mine);
}

/** Bring the parts that follow the range to another state of the address bar in the same range: the charts stay as they are. */
export function refreshParts(charts) {
  const [mine, state] = [latest, location.href];
  return swapParts(charts, () => mine === latest && state === location.href);
}

async function swapParts(charts, isWanted) {
  const { page } = await pageAt(location.href);
  if (!isWanted()) return;
  for (const part of document.querySelectorAll("[data-follows='range'][id]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh) continue;
    const focus = part.contains(document.activeElement) ? likeIn(fresh, document.activeElement) : null;
    part.replaceWith(document.adoptNode(fresh));
    if (focus?.matches("tr")) focus.tabIndex = -1;
    focus?.focus({ preventScroll: true });
  }
  document.title = page.title || document.title;
  for (const chart of charts) {
    const figure = chart.element.dataset.url ? null : figureOf(chart.element.id, page);
    if (figure && chart.drawn) await chart.draw(figure);
  }
  document.dispatchEvent(new CustomEvent("swapped"));
}

/** What stands for an element in the part that comes in the place of its own: who pans with the keyboard pans on from there. */
function likeIn(part, element) {
  const { link, ns } = element.dataset;
  const isLike = (one) => (link ? one.dataset.link === link && one.dataset.ns === ns : one.id === element.id && one.textContent === element.textContent);
  return [...part.querySelectorAll(element.tagName)].find(isLike) ?? part.querySelector("a[href]");
}

/** The moment that a row of a table stands for: its own, else the first one that it shows; null where it has none. */
export function momentOf(row) {
  return parseNs(row?.dataset.ns ?? row?.querySelector("[data-ns]")?.dataset.ns ?? null);
}

/** The first and the last moment that rows stand for; null where none stands for one. */
export function spanOf(rows) {
  const moments = rows.map(momentOf).filter((ns) => ns !== null);
  if (!moments.length) return null;
  return moments.reduce(({ from, to }, ns) => ({ from: ns < from ? ns : from, to: ns > to ? ns : to }), { from: moments[0], to: moments[0] });
}
