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
  // As wide as the page, so that words keep their size on a narrow screen.
  const wide = Math.max(300, Math.min(640, document.documentElement.clientWidth - 32)), span = wide - 80;
  const x = (one) => 60 + span * (Math.log10(one.cost_usd_per_request) - left) / (right - left);
  const y = (one) => 250 - 220 * (one.reward - low) / (top - low);
  const known = (one) => all.includes(one);
  const along = (some) => some.filter(known).sort((a, b) => x(a) - x(b)).map((one) => [x(one), y(one)]);
  const path = (some) => along(some).map((at, number) => `${number ? "L" : "M"}${at.join(" ")}`).join("");
  const place = places([...all.map((one) => [x(one), y(one)]), ...dotted(along(points))].map(([at, height]) =>
    ({ left: at - 5, right: at + 5, top: height - 5, bottom: height + 5 })), wide);
  const words = (text, one) => draw("text", { ...place(text, x(one), y(one)), class: "tick" }, text);
  const ticks = Array.from({ length: Math.floor(right) - Math.ceil(left) + 1 }, (_, at) => Math.ceil(left) + at);
  return draw("svg", { class: "frontier", viewBox: `0 0 ${wide} 300`, role: "img", "aria-label": "Reward over cost per request; the table below has the numbers" },
    draw("path", { d: `M60 250H${60 + span}M60 20V250`, class: "axis" }),
    ...ticks.map((tick) => draw("text", { x: 60 + span * (tick - left) / (right - left), y: 268, class: "tick middle" }, usd(10 ** tick))),
    ...[low, (low + top) / 2, top].map((tick) => draw("text", { x: 52, y: 254 - 220 * (tick - low) / (top - low), class: "tick end" }, fixed(tick))),
    draw("text", { x: 60 + span / 2, y: 292, class: "tick middle" }, "dollars per request"), draw("text", { x: 60, y: 12, class: "tick" }, "reward"),
    draw("path", { d: path(mix), class: "line mix" }), draw("path", { d: path(points), class: "line" }),
    ...points.filter(known).flatMap((one) => [draw("circle", { cx: x(one), cy: y(one), r: 4, class: "budget" }), one.step && words(`× ${one.step}`, one)]),
    ...others.filter(known).flatMap((one) => [draw("rect", { x: x(one) - 4, y: y(one) - 4, width: 8, height: 8, class: `model k${(one.colour ?? 1) % 8}` }), words(one.name.split("/").at(-1).slice(-24), one)]),
    known(recorded) ? draw("circle", { cx: x(recorded), cy: y(recorded), r: 7, class: "recorded" }) : null);
}

/** Places on a line, so close that no words fit in between. */
const dotted = (line) => line.slice(1).flatMap(([right, end], at) => Array.from({ length: 8 }, (_, step) => {
  const [left, begin] = line[at], share = (step + 1) / 9;
  return [left + share * (right - left), begin + share * (end - begin)];
}));

const LETTER = 6.6, LINE = 13; // pixels of a letter and of a line at 12 px, the widest that a page's fonts have

/** Where a point's words go: above, below or beside it, and further away until they cover nothing that is `taken` already. */
function places(taken, wide) {
  return (text, x, y) => {
    const long = LETTER * text.length, boxes = [];
    for (let away = 0; away < 8; away++) for (const [dx, dy] of [[-long / 2, -8], [-long / 2, LINE + 6], [8, 4], [-long - 8, 4]]) {
      const left = Math.max(60, Math.min(wide - long - 2, x + dx)), bottom = y + dy + Math.sign(dy - 4) * away * LINE;
      boxes.push({ left, right: left + long, top: bottom - LINE + 3, bottom: bottom + 3 });
    }
    const free = boxes.find((box) => box.top > 14 && box.bottom < 250 && !taken.some((one) =>
      one.left < box.right && box.left < one.right && one.top < box.bottom && box.top < one.bottom)) ?? boxes[0];
    taken.push(free);
    return { x: free.left, y: free.bottom - 3 };
  };
}

function widened(values, by) {
  const low = Math.min(...values), top = Math.max(...values), more = by * (top - low || Math.abs(top) || 1);
  return [low - more, top + more];
}
