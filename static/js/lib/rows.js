// How keys and buttons of a pointer are understood in a table.

/** The row that a key leads to from row `at` of `count`; null for a key that means nothing in a table. */
export function moveIn(count, at, key) {
  if (count === 0) return null;
  switch (key) {
    case "ArrowDown":
      return Math.min(at + 1, count - 1);
    case "ArrowUp":
      return Math.max(at - 1, 0);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}

/** Where a click on a row leads: "here", "beside" (a new tab, as with links) or null. */
export function goal({ button, ctrlKey, metaKey, shiftKey, altKey }) {
  if (altKey) return null;
  if (button === 1) return "beside";
  if (button !== 0) return null;
  return ctrlKey || metaKey || shiftKey ? "beside" : "here";
}
