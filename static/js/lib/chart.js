// Draws figures. The only module that touches Plotly; it is loaded when the first chart comes near the window.

import { NARROW, narrowed } from "./narrow.js";
import { linkOf, outline, outlineInBand, pointOf } from "./pick.js";
import { themed } from "./theme.js";
import { nsAt, positionOf } from "./time.js";

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: false, showTips: false };
const charts = new Set();
/** Pixels between the margins of A4 and of US Letter. */
const PAPER = 690;
let loading = null;

/** Plotly itself, from our own server. */
function plotly() {
  loading ??= new Promise((resolve, reject) => {
    keepPlotlyFromAddingStyles();
    const script = document.createElement("script");
    script.src = document.querySelector("[data-plotly]").dataset.plotly;
    // The script adds a style sheet for maps as it loads, which our pages forbid and do not need: it gets an inert element.
    const create = document.createElement;
    document.createElement = (name, options) => create.call(document, name === "style" ? "template" : name, options);
    script.onload = () => {
      delete document.createElement;
      resolve(window.Plotly);
    };
    script.onerror = () => {
      delete document.createElement;
      reject(new Error("plotly.min.js could not be loaded"));
    };
    document.head.append(script);
  });
  return loading;
}

/** Plotly leaves an element of this id and class alone; its rules are in charts.css. */
function keepPlotlyFromAddingStyles() {
  const mark = document.createElement("meta");
  mark.id = "plotly.js-style-global";
  mark.className = "no-inline-styles";
  document.head.append(mark);
}

function colourOf(element) {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}

/** One chart in its element. */
export class Chart {
  /**
   * @param {HTMLElement} element where to draw
   * @param {?object} figure as the server made it; null for one that `onLoad` fetches
   * @param {{onRange?: Function, onSelect?: Function, onReset?: Function, onLoad?: Function, spanOf?: Function}} handlers
   *   `onRange(from, to)` with BigInt nanoseconds; `spanOf(link)` gives `{ from, to }` of an object that a band may hold, or null
   */
  constructor(element, figure, handlers = {}) {
    this.element = element;
    this.figure = figure;
    this.handlers = handlers;
    this.selected = null;
    this.drawn = false;
    this.cross = document.createElement("div");
    this.cross.className = "crosshair";
    this.cross.hidden = true;
    charts.add(this);
  }

  get meta() {
    return this.figure?.layout.meta ?? null;
  }

  /** Draw, or draw anew. */
  async draw(figure = this.figure) {
    const [Plotly, loaded] = await Promise.all([plotly(), figure ?? this.handlers.onLoad()]);
    this.figure = loaded;
    const colours = colourOf(this.element);
    const { data, layout } = themed(this.figure, colours);
    layout.font = { ...layout.font, family: getComputedStyle(this.element).fontFamily };
    if (this.element.clientWidth < NARROW) Object.assign(layout, narrowed(layout));
    layout.shapes = [...(layout.shapes ?? []), ...this.shapes(colours)];
    if (!this.drawn) this.element.replaceChildren();
    await Plotly.react(this.element, data, layout, CONFIG);
    if (!this.drawn) this.listen();
    this.element.append(this.cross);
    this.drawn = true;
    this.element.dataset.drawn = String(Number(this.element.dataset.drawn ?? 0) + 1);
  }

  shapes(colours) {
    if (!this.selected) return [];
    const { data } = this.figure;
    const point = pointOf(data, this.selected);
    const span = point ? null : this.handlers.spanOf?.(this.selected);
    const shape = point ? outline(data, point, colours("--text")) : span && outlineInBand(data, span, this.meta, colours("--text"));
    return shape ? [shape] : [];
  }

  /** Show one object as selected, or none. */
  async select(link) {
    this.selected = link;
    if (!this.drawn) return;
    const Plotly = await plotly();
    const kept = themed(this.figure.layout.shapes ?? [], colourOf(this.element));
    await Plotly.relayout(this.element, { shapes: [...kept, ...this.shapes(colourOf(this.element))] });
  }

  /** Draw as wide as a sheet of paper, or as wide as its place again; at once, since printing waits for nothing. */
  fit(width) {
    if (this.drawn) window.Plotly.relayout(this.element, { width, autosize: width === null });
  }

  listen() {
    const { onRange, onSelect, onReset } = this.handlers;
    this.element.on("plotly_relayout", (change) => {
      const low = change["xaxis.range[0]"];
      const high = change["xaxis.range[1]"];
      if (onRange && this.meta && typeof low === "number" && typeof high === "number") onRange(nsAt(low, this.meta), nsAt(high, this.meta));
    });
    this.element.on("plotly_doubleclick", () => onReset?.());
    this.element.on("plotly_click", ({ points }) => {
      const link = linkOf(points[0]);
      if (link) onSelect?.(link, points[0]);
    });
    this.element.addEventListener("mousemove", (event) => this.share(event));
    this.element.addEventListener("mouseleave", () => showMoment(null, this));
  }

  /** Tell the other charts which moment the pointer is at. */
  share(event) {
    const axis = this.element._fullLayout?.xaxis;
    if (!axis || !this.meta) return;
    const pixel = event.clientX - this.element.getBoundingClientRect().left - axis._offset;
    showMoment(pixel >= 0 && pixel <= axis._length ? nsAt(axis.p2d(pixel), this.meta) : null, this);
  }

  /** A line at a moment, or none. */
  point(ns) {
    const axis = this.element._fullLayout?.xaxis;
    const pixel = ns === null || !axis || !this.meta ? -1 : axis.d2p(positionOf(ns, this.meta));
    this.cross.hidden = pixel < 0 || pixel > (axis?._length ?? -1);
    if (!this.cross.hidden) this.cross.style.left = `${axis._offset + pixel}px`;
  }
}

addEventListener("beforeprint", () => charts.forEach((chart) => chart.fit(PAPER)));
addEventListener("afterprint", () => charts.forEach((chart) => chart.fit(null)));

/** Show one moment in all charts of the page but the one that it comes from. */
export function showMoment(ns, source = null) {
  for (const chart of charts) if (chart !== source && chart.drawn) chart.point(ns);
  document.dispatchEvent(new CustomEvent("moment", { detail: ns }));
}

/** The figure in `<script type="application/json" id="ID-figure">`. */
export function figureOf(id, root = document) {
  const script = root.getElementById ? root.getElementById(`${id}-figure`) : root.querySelector(`#${CSS.escape(id)}-figure`);
  return script ? JSON.parse(script.textContent) : null;
}

/** Draw when it comes near the window, and again when the theme changes. */
export function drawWhenSeen(chart) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      chart.draw().catch((error) => fail(chart.element, error));
    },
    { rootMargin: "400px" },
  );
  observer.observe(chart.element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.drawn && chart.draw());
}

/** Say in the chart's place that it could not be drawn. */
export function fail(element, error) {
  const note = document.createElement("p");
  note.className = "chart-failed";
  note.textContent = `This chart could not be drawn: ${error.message}. The tables say the same.`;
  element.replaceChildren(note);
}
