// Pages with charts and nothing else to wire.

import { wireCharts } from "./lib/ranged.js";

wireCharts();
