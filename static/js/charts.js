// Pages with charts and nothing else to wire: a point that stands for an object leads to its page.

import { wireCopyButtons } from "./lib/copy.js";
import { wireCharts } from "./lib/ranged.js";
import { queryOn } from "./lib/url.js";

const { base, trace } = document.body.dataset;

const clock = new URLSearchParams(location.search).get("clock");

wireCharts({ onSelect: (link) => location.assign(queryOn(`${base}/t/${trace}/${link}`, { clock })) });
wireCopyButtons();
