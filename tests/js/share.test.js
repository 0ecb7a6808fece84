import assert from "node:assert/strict";
import test from "node:test";

import { linkOf } from "../../static/js/lib/share.js";

const place = (search, hash = "") => ({ origin: "http://127.0.0.1:8350", search, hash });

test("the canonical path gets the state of the address bar", () => {
  const link = linkOf("/t/abc/sockets/0x1@5?from=1&to=2", place("?from=7&to=9&selected=recv:0x1@5"));
  assert.equal(link, "http://127.0.0.1:8350/t/abc/sockets/0x1@5?from=7&to=9&selected=recv:0x1@5");
});

test("an absolute link stays on its path and gets the origin of the page", () => {
  assert.equal(linkOf("http://127.0.0.1:8350/base/t/abc?x=1", place("", "#notes")), "http://127.0.0.1:8350/base/t/abc#notes");
});

test("the form of the answer and the token are not shared", () => {
  assert.equal(linkOf("/t/abc/sockets", place("?format=html&token=s&port=443")), "http://127.0.0.1:8350/t/abc/sockets?port=443");
});
