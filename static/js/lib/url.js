// The state of a view and its URL: what is shown is in the address bar, and nothing else is.

import { parseNs } from "./time.js";

/** A moment of a query string: exact where it is one in nanoseconds, else the text as it is, which the server reads; null where there is none. */
function moment(text) {
  return parseNs(text) ?? (text || null);
}

/** The range and the selection that a query string asks for; absent parts are null. */
export function readState(search) {
  const query = new URLSearchParams(search);
  return { from: moment(query.get("from")), to: moment(query.get("to")), selected: query.get("selected") || null };
}

/** A query string with some of its parts changed: null takes one away, the others stay as they were, in their order. */
export function withState(search, changes) {
  const query = new URLSearchParams(search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) query.delete(key);
    else query.set(key, String(value));
  }
  // Positions of lists belong to the range in which they were found.
  if ("from" in changes || "to" in changes) for (const key of [...query.keys()]) if (key.endsWith("after")) query.delete(key);
  const text = query.toString().replaceAll("%40", "@").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `?${text}` : "";
}

/** A URL, which may have a query of its own, with parts of its query changed. */
export function queryOn(url, changes) {
  const [path, search] = url.split("?");
  return path + withState(search ?? "", changes);
}

/** A range a number of times as wide around the same middle; never narrower than a nanosecond. */
export function scaledRange(from, to, times) {
  const width = to - from > 0n ? to - from : 1n;
  const scaled = BigInt(Math.max(1, Math.round(Number(width) * times)));
  const middle = from + width / 2n;
  return { from: middle - scaled / 2n, to: middle - scaled / 2n + scaled };
}

/** A range moved by a part of its width. */
export function movedRange(from, to, part) {
  const by = BigInt(Math.round(Number(to - from) * part));
  return { from: from + by, to: to + by };
}
