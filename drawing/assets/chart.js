// Charts over time or over requests: lines with their names at their ends, and quiet marks of the events that explain them.

import { LEFT, LINE, fitted, moments, resized, spread, ticks, wide } from "./axes.js";
import { draw, el } from "./dom.js";
import { clock, count, digits } from "./format.js";

// A single dear bill may be 200 budgets, and would flatten all else. What is as high as this in medians, and as rare, does not stretch the scale.
const OUTLIER_MEDIANS = 6, OUTLIERS_SHARE = 0.05;
const SPAN = 0.2; // least that a scale between two given ends shows
const HIGH = 180, TOP = 18, BOTTOM = 24; // pixels

const groups = new Map(); // charts that show the same place when one of them is pointed at

/**
 * {box, set, end}: a chart over time, or with `over` over what that names. `set(times, columns, marks, alarms)` shows series by name: {name: [value or null, …]},
 * marks [{at, number}], and alarms [{at, of}], ticks at the bottom in the ink of the series. `line` draws a level, such as 1 for spend ÷ budget; the scale begins at
 * 0 or, with `low`, shows what is between `low` and `high`; `ink` tells
 * the ink of a series by its name and place.
 */
export function chart(title, { line = null, low: least = null, high = null, show = digits, ink = (_, at) => `c${at % 8}`, over = null, sync = "time" } = {}) {
  const place = el("div.plot"), box = el("figure.chart", {}, el("h3", {}, title), place);
  let times = [], columns = {}, marks = [], alarms = [], pointed = null, width = 0;
  const group = groups.get(sync) ?? groups.set(sync, new Set()).get(sync);
  const point = (at) => { if (at !== pointed) { pointed = at; render(); } };
  const told = (at) => over ? `${over} ${count(Math.round(at))}` : clock(at);
  group.add(point);
  place.addEventListener("pointermove", (event) => {
    const { left } = place.getBoundingClientRect(), x = scale();
    if (times.length) for (const other of group) other(times.reduce((a, b) => Math.abs(x(b) - event.clientX + left) < Math.abs(x(a) - event.clientX + left) ? b : a));
  });
  place.addEventListener("pointerleave", () => { for (const other of group) other(null); });

  /** What is said at the end of each line: its value, there or where one points. */
  function ends() {
    const here = pointed === null ? times.length - 1 : times.indexOf(pointed), names = Object.keys(columns);
    return names.map((name, at) => {
      const before = columns[name].slice(0, here + 1).findLast(Number.isFinite), last = columns[name].findLast(Number.isFinite);
      return { name, last, kind: ink(name, at), text: before === undefined ? "–" : `${show(before)}${names.length > 1 ? ` ${name.split("/").at(-1)}` : ""}` };
    }).filter((one) => one.last !== undefined);
  }

  const margin = () => Math.min(0.5 * width, 12 + Math.max(24, ...ends().map((one) => wide(one.text, true))));
  function scale() {
    const [first, last] = [times[0], times.at(-1)], right = width - margin();
    return (at) => last > first ? LEFT + (right - LEFT) * (at - first) / (last - first) : right;
  }

  function render() {
    if (!width) return;
    const names = ends(), values = names.flatMap((one) => columns[one.name]).filter(Number.isFinite).sort((a, b) => a - b);
    if (!values.length) { place.replaceChildren(el("p.note", {}, "Nothing to show yet.")); return; }
    const limit = Math.min(values.at(-1), highest(values)), low = least === null ? Math.min(0, values[0], line ?? 0) : Math.max(least, values[0] - SPAN / 2);
    const reached = Math.max(line === null ? 0 : 1.2 * line, limit + 0.06 * (limit - low)) || 1, top = high === null ? reached : least === null ? high : Math.min(high, limit + SPAN / 2), right = width - margin(), bottom = HIGH - BOTTOM;
    const x = scale(), y = (value) => bottom - (bottom - TOP) * (Math.min(top, value) - low) / (top - low);
    const above = values.filter((value) => value > top).length, heights = spread(names.map((one) => y(one.last) + 4), LINE, TOP, bottom);
    const across = over ? ticks(times[0], times.at(-1), Math.max(2, width / 110)).map((at) => ({ at, text: count(at) })) : moments(times[0], times.at(-1), Math.max(2, width / 110));
    const spoken = `${title}, ${pointed === null ? "at the end" : `at ${told(pointed)}`}: ${names.map((one) => one.text).join(", ")}.${above ? ` Above the scale: ${above} point${above > 1 ? "s" : ""}, up to ${show(values.at(-1))}.` : ""}`;
    place.replaceChildren(draw("svg", { viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH, role: "img", "aria-label": spoken },
      ...ticks(low, top, 4).flatMap((tick) => [draw("path", { d: `M${LEFT} ${y(tick)}H${right}`, class: "grid" }), draw("text", { x: LEFT - 8, y: y(tick) + 4, class: "tick end" }, digits(tick, 6))]),
      ...across.filter((one) => x(one.at) > LEFT + 12 && x(one.at) < right - 8).map((one) => draw("text", { x: x(one.at), y: HIGH - 6, class: "tick middle" }, one.text)),
      ...numbered(marks.map((one) => ({ ...one, x: x(one.at) })).filter((one) => one.x >= LEFT && one.x <= right + 1)).flatMap((one) => [
        draw("path", { d: `M${one.x} ${TOP - 4}V${bottom}`, class: "event" }), one.text && draw("text", { x: one.x, y: 10, class: "tick middle" }, one.text)]),
      line !== null && draw("path", { d: `M${LEFT} ${y(line)}H${right}`, class: "level" }),
      ...alarms.map((one) => draw("path", { d: `M${x(one.at)} ${bottom}v-9`, class: `alarm ${ink(one.of, 0)}` })),
      ...names.map((one) => draw("path", { d: joined(columns[one.name], x, y), class: `series ${one.kind}` })),
      pointed !== null && [draw("path", { d: `M${x(pointed)} ${TOP}V${bottom}`, class: "pointed" }), draw("text", { x: Math.max(LEFT + 30, Math.min(right - 30, x(pointed))), y: 10, class: "tick middle now" }, told(pointed))],
      above > 0 && draw("text", { x: right, y: 10, class: "tick end" }, `↑ ${above} up to ${show(values.at(-1))}`),
      ...names.map((one, at) => draw("text", { x: right + 6, y: heights[at], class: `word ${one.kind}` }, fitted(one.text, width - right - 6)))));
  }

  const joined = (column, x, y) => times.flatMap((at, place) => Number.isFinite(column[place]) ? [`${x(at).toFixed(1)} ${y(column[place]).toFixed(1)}`] : []).map((one, at) => `${at ? "L" : "M"}${one}`).join("");
  const end = resized(place, (found) => { width = Math.max(240, found); render(); });
  return {
    box, end: () => { end(); group.delete(point); },
    set: (at, found, newMarks = marks, newAlarms = alarms) => { [times, columns, marks, alarms] = [at, found, newMarks, newAlarms]; if (!times.includes(pointed)) pointed = null; render(); },
  };
}

/** Events with their numbers, those of neighbours together: "2–4". */
function numbered(events) {
  let first = null;
  for (const one of events) {
    if (first && one.x - first.x < LINE) first.text = `${first.number}–${one.number}`;
    else (first = one).text = String(one.number);
  }
  return events;
}

/** The highest of sorted values that is no outlier. */
function highest(values) {
  const most = OUTLIER_MEDIANS * values[values.length >> 1], within = values.findLastIndex((value) => value <= most) + 1;
  return most > 0 && values.length - within <= OUTLIERS_SHARE * values.length ? values[within - 1] : values.at(-1);
}
