// Puts the values of the style sheet's custom properties in the place of their names.

const NAME = /^var\((--[a-z0-9-]+)\)$/;

/** A copy of a figure in which each "var(--name)" is what `valueOf("--name")` gives. */
export function themed(value, valueOf) {
  if (typeof value === "string") {
    const name = NAME.exec(value)?.[1];
    return name ? valueOf(name) || "currentcolor" : value;
  }
  if (Array.isArray(value)) return value.map((item) => themed(item, valueOf));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, valueOf)]));
  }
  return value;
}
