import assert from "node:assert/strict";
import { test } from "node:test";

import { formatAbsolute, formatDuration, formatTime, nsAt, parseNs, positionOf } from "../../static/js/lib/time.js";

test("nanoseconds are read from whole numbers alone", () => {
  assert.equal(parseNs("-12"), -12n);
  assert.equal(parseNs("9223372036854775807"), 9223372036854775807n);
  for (const text of ["", "1.5", "0x10", "1e3", " 1", null, undefined]) assert.equal(parseNs(text), null);
});

test("a position late in a long trace keeps its nanosecond", () => {
  const meta = { base_ns: "8640000000000000", unit_ns: "1000" };
  assert.equal(nsAt(0.001, meta), 8640000000000001n);
  assert.equal(nsAt(12.345, meta), 8640000000012345n);
  assert.equal(positionOf(8640000000012345n, meta), 12.345);
});

test("positions and moments are each other's inverse", () => {
  for (const unit_ns of ["1", "1000", "1000000", "1000000000"]) {
    const meta = { base_ns: "-5000000000", unit_ns };
    for (const ns of [-5000000001n, 0n, 1n, 123456789n, 60000000000n]) assert.equal(nsAt(positionOf(ns, meta), meta), ns);
  }
});

test("a moment is written to the microsecond and never rounded up", () => {
  assert.equal(formatTime(12345678999n), "+12.345\u202f678 s");
  assert.equal(formatTime(-1500n), "\u22120.000\u202f001 s");
  assert.equal(formatTime(1234567000000000n), "+1\u202f234\u202f567.000\u202f000 s");
});

test("a span has three digits in its largest unit", () => {
  const expected = { 0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 12345: "12.3 µs", 123456: "123 µs", 999999: "1\u202f000 µs", 1500000: "1.50 ms", 60000000000: "1.00 min" };
  for (const [ns, text] of Object.entries(expected)) assert.equal(formatDuration(BigInt(ns)), text);
  assert.equal(formatDuration(-2000000000n), "\u22122.00 s");
});

test("a moment in UTC counts from the trace's start", () => {
  assert.equal(formatAbsolute(1500000n, "2025-03-04T10:00:00.250000Z"), "2025-03-04 10:00:00.251500 UTC");
  assert.equal(formatAbsolute(-1n, "2025-03-04T10:00:00Z"), "2025-03-04 09:59:59.999999 UTC");
  assert.equal(formatAbsolute(1n, ""), null);
});
