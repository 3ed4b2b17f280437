// One row's value with how far it may be off, on the scale of its table.

import { draw } from "./dom.js";

/** The scale on which 0 to 200 shows all of these values, with room at both ends. */
export function scaled(values, least = 0) {
  const low = Math.min(...values), room = Math.max(Math.max(...values) - low, least) || 1;
  return (value) => 6 + 188 * (value - low) / room;
}

/** A picture of `middle` between `low` and `high` (null: no interval), with a line at `level` if there is one; `kind` tells its ink, `spoken` what it says. */
export function whisker(spoken, kind, x, { low, middle, high, level = null }) {
  const line = (name, d) => draw("path", { class: name, d, "vector-effect": "non-scaling-stroke" });
  return draw("svg", { class: "whisker", viewBox: "0 0 200 20", preserveAspectRatio: "none", role: "img", "aria-label": spoken },
    line("track", "M0 10H200"), level === null ? null : line("track", `M${x(level)} 0V20`),
    low === null ? null : line(`spread ${kind}`, `M${x(low)} 10H${x(high)}`), line(`middle-of ${kind}`, `M${x(middle)} 10h0`));
}
