import assert from "node:assert/strict";
import { test } from "node:test";

import { movedRange, queryOn, readState, scaledRange, withState } from "../../static/js/lib/url.js";

test("the state of a view is read from its query string", () => {
  assert.deepEqual(readState("?from=-5&to=9223372036854775807&selected=recv:0x10@7"), {
    from: -5n,
    to: 9223372036854775807n,
    selected: "recv:0x10@7",
  });
  assert.deepEqual(readState("?from=09:30:12 UTC&to="), { from: "09:30:12 UTC", to: null, selected: null });
});

test("a changed state keeps what it does not speak of", () => {
  assert.equal(withState("?kind=send&from=1", { from: 9007199254740993n, to: 9007199254740995n }), "?kind=send&from=9007199254740993&to=9007199254740995");
  assert.equal(withState("?from=1&to=2", { from: null, to: null }), "");
});

test("a link in a query stays readable", () => {
  assert.equal(withState("", { selected: "send:0x1f0@-3" }), "?selected=send:0x1f0@-3");
});

test("a new range begins the lists anew", () => {
  assert.equal(withState("?events_after=17&after=3&kind=abort", { from: 1n, to: 2n }), "?kind=abort&from=1&to=2");
  assert.equal(withState("?events_after=17", { selected: "a" }), "?events_after=17&selected=a");
});

test("ranges scale around their middle and never vanish", () => {
  assert.deepEqual(scaledRange(100n, 200n, 2), { from: 50n, to: 250n });
  assert.deepEqual(scaledRange(100n, 101n, 0.5), { from: 100n, to: 101n });
  assert.deepEqual(movedRange(100n, 200n, -0.5), { from: 50n, to: 150n });
});

test("a URL with a query of its own gets more of it", () => {
  assert.equal(queryOn("/t/1/timeline", { from: 5n, to: null }), "/t/1/timeline?from=5");
  assert.equal(queryOn("/t/1/timeline?end=other&from=1", { from: 5n, format: "json" }), "/t/1/timeline?end=other&from=5&format=json");
});
