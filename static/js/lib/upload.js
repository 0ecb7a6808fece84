// Words about a file that is being sent.

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** A size with three digits and its unit. */
export function sizeWords(bytes) {
  let unit = 0;
  let value = bytes;
  for (; value >= 1000 && unit < UNITS.length - 1; unit += 1) value /= 1000;
  const text = unit === 0 ? String(value) : value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
  return `${text} ${UNITS[unit]}`;
}

/** How far sending is. */
export function progressWords(name, done, total) {
  if (done >= total) return `${name}: all of ${sizeWords(total)} sent; the server is starting the collector.`;
  return `${name}: ${sizeWords(done)} of ${sizeWords(total)} sent.`;
}

/** Why a file is not sent at all. */
export function tooLarge(size, limit) {
  return `This file has ${sizeWords(size)}; the server takes at most ${sizeWords(limit)}. Collect it on the server: sockscope collect FILE.etl`;
}
