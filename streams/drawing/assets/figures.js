// The charts of a study or a report, as Python chose them, with the events that explain them.

import { chart, palette } from "./chart.js";
import { draw, el } from "./dom.js";
import { count, fixed, percent, usd } from "./format.js";

const SHOWN = { fixed, percent, usd };

/**
 * The charts {title, at, series: {name: [value or null, …]}, line, high, show, alarms: [{at, of}], more}, those with `more` behind a summary of that text,
 * and the marks {at, text} by number. `names` are the series in the order of their colours; others are coloured within their chart. Returns {parts, end}.
 */
export function figures({ charts, marks, names, over }, { open = false } = {}) {
  const sync = crypto.getRandomValues(new Uint32Array(1)).join(), numbers = marks.map(({ at }, number) => ({ at, number: number + 1 }));
  const pick = (name) => names.includes(name) ? palette(names.indexOf(name)) : undefined, ends = [];
  const drawn = (one) => {
    const made = chart(one.title, { over, sync, pick, line: one.line, high: one.high, show: SHOWN[one.show] });
    made.set(one.at, one.series, numbers, one.alarms);
    ends.push(made.end);
    return made.box;
  };
  const grid = (some) => el("div.charts", {}, ...some.map(drawn)), more = [...new Set(charts.map((one) => one.more).filter(Boolean))];
  return {
    parts: [
      marks.length ? el("ol.marks", {}, ...marks.map((one, at) => el("li", {}, el("span.mark", {}, String(at + 1)), ` at ${over} ${count(Math.round(one.at))}: ${one.text}`))) : null,
      grid(charts.filter((one) => !one.more)),
      ...more.map((title) => el("details", { open }, el("summary", {}, title), grid(charts.filter((one) => one.more === title)))),
    ].filter(Boolean),
    end: () => { for (const one of ends) one(); },
  };
}

/** Reward over cost: a line through `points`, a square with its name for each of `others`, a ring, a dashed line through `mix`. */
export function picture(points, others, recorded, mix = []) {
  const all = [...points, ...others, recorded, ...mix].filter((one) => one?.cost_usd_per_request > 0 && one.reward !== null);
  if (!all.length) return el("p", {}, "Without bills and labels there is nothing to draw.");
  const costs = all.map((one) => Math.log10(one.cost_usd_per_request)), rewards = all.map((one) => one.reward);
  const [left, right] = widened(costs, 0.08), [low, top] = widened(rewards, 0.12);
  const x = (one) => 60 + 560 * (Math.log10(one.cost_usd_per_request) - left) / (right - left);
  const y = (one) => 250 - 220 * (one.reward - low) / (top - low);
  const known = (one) => all.includes(one);
  const path = (some) => some.filter(known).sort((a, b) => x(a) - x(b)).map((one, at) => `${at ? "L" : "M"}${x(one)} ${y(one)}`).join("");
  const words = (text, one, kind) => draw("text", { x: Math.min(x(one), 560), y: y(one) - 8, class: kind }, text);
  const ticks = Array.from({ length: Math.floor(right) - Math.ceil(left) + 1 }, (_, at) => Math.ceil(left) + at);
  return draw("svg", { class: "frontier", viewBox: "0 0 640 300", role: "img", "aria-label": "Reward over cost per request; the table below has the numbers" },
    draw("path", { d: "M60 250H620M60 20V250", class: "axis" }),
    ...ticks.map((tick) => draw("text", { x: 60 + 560 * (tick - left) / (right - left), y: 268, class: "tick middle" }, usd(10 ** tick))),
    ...[low, (low + top) / 2, top].map((tick) => draw("text", { x: 52, y: 254 - 220 * (tick - low) / (top - low), class: "tick end" }, tick.toFixed(3))),
    draw("text", { x: 340, y: 292, class: "tick middle" }, "dollars per request"), draw("text", { x: 60, y: 12, class: "tick" }, "reward"),
    draw("path", { d: path(mix), class: "line mix" }), draw("path", { d: path(points), class: "line" }),
    ...points.filter(known).flatMap((one) => [draw("circle", { cx: x(one), cy: y(one), r: 4, class: "budget" }), one.step && words(`× ${one.step}`, one, "tick")]),
    ...others.filter(known).flatMap((one) => [draw("rect", { x: x(one) - 4, y: y(one) - 4, width: 8, height: 8, class: `model k${(one.colour ?? 1) % 8}` }), words(one.name.slice(-24), one, "tick")]),
    known(recorded) ? draw("circle", { cx: x(recorded), cy: y(recorded), r: 7, class: "recorded" }) : null);
}

function widened(values, by) {
  const low = Math.min(...values), top = Math.max(...values), more = by * (top - low || Math.abs(top) || 1);
  return [low - more, top + more];
}
