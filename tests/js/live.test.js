import assert from "node:assert/strict";
import test from "node:test";

import { inTrace, namesOf, pauseAfter, scrolled } from "../../static/js/lib/live.js";

test("a page that takes long is brought up to date less often", () => {
  assert.equal(pauseAfter(20), 1500);
  assert.equal(pauseAfter(2000), 16000);
});

test("the same view of the trace that a followed one became", () => {
  assert.equal(inTrace("/t/live-1/sockets/0x1@5", "", "live-1", "abc"), "/t/abc/sockets/0x1@5");
  assert.equal(inTrace("/base/t/live-1", "/base", "live-1", "abc"), "/base/t/abc");
  assert.equal(inTrace("/base/t/live-12/x", "/base", "live-1", "abc"), "/base/t/abc");
});

test("what stood at a height stands there again", () => {
  assert.equal(scrolled(100, 340.4), 240);
  assert.equal(scrolled(null, 3), 0);
});

test("an element is known by its names, the surest first", () => {
  const attributes = { href: "/t/x", id: "a", "data-link": "" };
  assert.deepEqual(namesOf((name) => attributes[name] ?? null), [["id", "a"], ["href", "/t/x"]]);
});
