import assert from "node:assert/strict";
import { test } from "node:test";

import { goal, moveIn } from "../../static/js/lib/rows.js";

test("arrows go from row to row and stop at the ends", () => {
  assert.deepEqual(
    [moveIn(3, 0, "ArrowDown"), moveIn(3, 2, "ArrowDown"), moveIn(3, 2, "ArrowUp"), moveIn(3, 0, "ArrowUp")],
    [1, 2, 1, 0],
  );
  assert.deepEqual([moveIn(3, 1, "Home"), moveIn(3, 1, "End"), moveIn(3, 1, "a"), moveIn(0, 0, "End")], [0, 2, null, null]);
});

test("a click on a row leads where a click on its link would", () => {
  assert.equal(goal({ button: 0 }), "here");
  assert.equal(goal({ button: 0, ctrlKey: true }), "beside");
  assert.equal(goal({ button: 0, metaKey: true }), "beside");
  assert.equal(goal({ button: 1 }), "beside");
  assert.equal(goal({ button: 2 }), null);
  assert.equal(goal({ button: 0, altKey: true }), null);
});
