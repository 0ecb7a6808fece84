// Pages with charts and nothing else to wire.

import { wireCopyButtons } from "./lib/copy.js";
import { wireCharts } from "./lib/ranged.js";

wireCharts();
wireCopyButtons();
