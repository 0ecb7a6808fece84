// The link to what a page shows now: its canonical path, with the state that scripts may have changed since it was loaded.

/** Absolute URL of a view. `href` is the canonical link as the page was sent, `place` the window's location. */
export function linkOf(href, place) {
  const link = new URL(href, place.origin);
  const query = new URLSearchParams(place.search);
  for (const key of ["format", "token"]) query.delete(key);
  const text = query.toString().replaceAll("%40", "@").replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/");
  return `${link.origin}${link.pathname}${text ? `?${text}` : ""}${place.hash ?? ""}`;
}
