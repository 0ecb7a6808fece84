// Pages with charts and nothing else to wire: a point that stands for an object leads to its page.

import { wireCopyButtons } from "./lib/copy.js";
import { wireCharts } from "./lib/ranged.js";

const { base, trace } = document.body.dataset;

wireCharts({ onSelect: (link) => location.assign(`${base}/t/${trace}/${link}`) });
wireCopyButtons();
