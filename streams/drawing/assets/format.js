// Numbers as people read them.

export const NONE = "–";
export const known = (value) => value !== null && value !== undefined;

/** Dollars: four digits that count, plain from a hundred on. */
export function usd(value) {
  if (!known(value)) return NONE;
  if (Math.abs(value) >= 100) return `$${value.toLocaleString("en", { maximumFractionDigits: 2 })}`;
  if (value !== 0 && Math.abs(value) < 1e-3) return `$${value.toExponential(2).replace("e-", "e−")}`;
  return `$${Number(value.toPrecision(4))}`;
}

export const fixed = (value, digits = 3) => known(value) ? value.toFixed(digits).replace("-", "−") : NONE;
export const percent = (value, digits = 0) =>
  known(value) ? `${(100 * value).toFixed(digits).replace("-", "−")} %` : NONE;
export const count = (value) => known(value) ? value.toLocaleString("en") : NONE;
export const digits = (value, many = 3) => known(value) ? String(Number(value.toPrecision(many))) : NONE;
export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString([], { hour12: false });
export const moment = (seconds) => new Date(1000 * seconds).toLocaleString([], { hour12: false });
export const signed = (value, many = 3) =>
  known(value) ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(many)}` : NONE;
/** A value and by how much it may be off. */
export const off = (value, by, many = 3) => known(value) && known(by) ? `${fixed(value, many)} ± ${fixed(by, many)}` : fixed(value, many);
