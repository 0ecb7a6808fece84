import assert from "node:assert/strict";
import test from "node:test";

import { progressWords, sizeWords, tooLarge } from "../../static/js/lib/upload.js";

test("sizes have three digits and a unit", () => {
  assert.deepEqual([0, 999, 1000, 12_400_000, 8 * 2 ** 30].map(sizeWords), ["0 bytes", "999 bytes", "1.00 kB", "12.4 MB", "8.59 GB"]);
});

test("progress says how much is sent, and when all is", () => {
  assert.equal(progressWords("a.etl", 500, 2000), "a.etl: 500 bytes of 2.00 kB sent.");
  assert.match(progressWords("a.etl", 2000, 2000), /all of 2.00 kB sent/);
});

test("a file that is too large says both sizes", () => {
  assert.match(tooLarge(2_000_000, 1_000_000), /2.00 MB.*1.00 MB/);
});
