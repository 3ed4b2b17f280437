// Numbers as people read them.

export const NONE = "–";
export const known = (value) => value !== null && value !== undefined;

/** Dollars: so many digits that count, plain from a hundred on and down to a millionth. */
export function usd(value, many = 4) {
  if (!known(value)) return NONE;
  const size = Math.abs(value), text = size >= 100 ? size.toLocaleString("en", { maximumFractionDigits: 2 }) : String(Number(size.toPrecision(many)));
  return `${value < 0 ? "−" : ""}$${text.replace("e-", "e−")}`;
}

/** A number's text with a minus as wide as a plus; what is rounded to nothing has no sign. */
const minus = (text) => text.replace(/^-(?=[0.]*$)/, "").replace("-", "−");
export const count = (value) => known(value) ? minus(value.toLocaleString("en", { maximumFractionDigits: 0 })) : NONE;
/** So many decimals, none from a thousand on. */
export const fixed = (value, digits = 3) => !known(value) ? NONE : Math.abs(value) >= 1000 ? count(value) : minus(value.toFixed(digits));
export const percent = (value, digits = 0) => known(value) ? `${fixed(100 * value, digits)}%` : NONE;
/** So many digits that count. */
export const digits = (value, many = 3) => !known(value) ? NONE
  : Math.abs(value) >= 1000 ? count(Number(value.toPrecision(many))) : minus(String(Number(value.toPrecision(many))));
/** λ_t where no price of a dollar meets the budget: `router_state.dual_pacer.UNREACHABLE`. */
const UNREACHABLE = 1e6, NO_PRICE = "no price meets the budget";
const UNTIL = "The cheapest model is called until bills say that a model costs less than the budget, the debt is paid, or a new period begins.";
export const dual = (value, many = 3) => known(value) && value >= UNREACHABLE ? NO_PRICE : digits(value, many);
/** What follows where λ_t is that, and how it ends. */
export const until = (value) => known(value) && value >= UNREACHABLE ? UNTIL : "";
/** λ_t as a line shows it: a line up to where no price meets the budget would flatten the rest. */
export const drawn = (value) => known(value) && value < UNREACHABLE ? value : null;
export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString([], { hour12: false });
export const moment = (seconds) => new Date(1000 * seconds).toLocaleString("sv"); // 2026-11-21 09:31:00, as the terminal writes it
export const signed = (value, many = 3) => {
  const text = fixed(value, many);
  return !known(value) || text.startsWith("−") ? text : `+${text}`;
};
/** A value and by how much it may be off. */
export const off = (value, by, many = 3) => known(value) && known(by) ? `${fixed(value, many)} ± ${fixed(by, many)}` : fixed(value, many);
