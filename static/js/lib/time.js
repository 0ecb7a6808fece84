// Times of a trace: exact nanoseconds as BigInt or text, positions on a plot's axis as numbers, and how both are written.

const THIN = "\u202f";
const MINUS = "\u2212";
const UNITS = [
  [86400000000000n, "d"],
  [3600000000000n, "h"],
  [60000000000n, "min"],
  [1000000000n, "s"],
  [1000000n, "ms"],
  [1000n, "µs"],
];

/** Nanoseconds from text such as "-12"; null for anything else. */
export function parseNs(text) {
  return typeof text === "string" && /^[+-]?\d{1,19}$/.test(text) ? BigInt(text) : null;
}

/** The nanosecond nearest to a position on an axis; `meta` is the `layout.meta` of its figure. */
export function nsAt(position, meta) {
  return BigInt(meta.base_ns) + BigInt(Math.round(position * Number(meta.unit_ns)));
}

/** Where a moment lies on an axis. */
export function positionOf(ns, meta) {
  return Number(ns - BigInt(meta.base_ns)) / Number(meta.unit_ns);
}

function grouped(value) {
  return value.toString().replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** A moment to the microsecond, never rounded up: "+12.345 678 s". */
export function formatTime(ns) {
  const sign = ns < 0n ? MINUS : "+";
  const micros = (ns < 0n ? -ns : ns) / 1000n;
  const rest = (micros % 1000000n).toString().padStart(6, "0");
  return `${sign}${grouped(micros / 1000000n)}.${rest.slice(0, 3)}${THIN}${rest.slice(3)} s`;
}

/** A span in the largest unit, with three digits: "12.3 ms". */
export function formatDuration(ns) {
  const sign = ns < 0n ? MINUS : "";
  const size = ns < 0n ? -ns : ns;
  for (const [unit, name] of UNITS) {
    if (size >= unit) return `${sign}${threeDigits(size, unit)} ${name}`;
  }
  return `${sign}${size} ns`;
}

function threeDigits(size, unit) {
  for (const [decimals, limit] of [[2n, 10n], [1n, 100n], [0n, 1000n]]) {
    const scale = 10n ** decimals;
    const scaled = (2n * size * scale + unit) / (2n * unit);
    if (scaled < limit * scale) {
      return decimals ? `${scaled / scale}.${(scaled % scale).toString().padStart(Number(decimals), "0")}` : `${scaled}`;
    }
  }
  return grouped((2n * size + unit) / (2n * unit));
}

/** A moment in UTC to the microsecond, or null when the trace's start is unknown. */
export function formatAbsolute(ns, startUtc) {
  const start = startUtc ? Date.parse(startUtc) : NaN;
  if (Number.isNaN(start)) return null;
  const fraction = /\.(\d+)/.exec(startUtc)?.[1] ?? "";
  const base = BigInt(Math.floor(start / 1000)) * 1000000n + BigInt(fraction.padEnd(6, "0").slice(0, 6) || "0");
  const micros = base + (ns >= 0n ? ns / 1000n : -((-ns + 999n) / 1000n));
  const seconds = micros >= 0n ? micros / 1000000n : -((-micros + 999999n) / 1000000n);
  const rest = micros - seconds * 1000000n;
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return null;
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${rest.toString().padStart(6, "0")} UTC`;
}
