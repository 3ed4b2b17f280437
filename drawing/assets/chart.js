// Charts over time or over requests: lines with their names at their ends, and quiet marks of the events that explain them.

import { LEFT, LINE, fitted, moments, resized, spread, ticks, wide } from "./axes.js";
import { draw, el } from "./dom.js";
import { clock, count, digits, moment } from "./format.js";

// A single dear bill may be 200 budgets, and would flatten all else. What is as high as this in medians, and as rare, does not stretch the scale.
const OUTLIER_MEDIANS = 6, OUTLIERS_SHARE = 0.05;
const SPAN = 0.2; // least that a scale between two given ends shows
const HIGH = 180, TOP = 18, BOTTOM = 24; // pixels

const groups = new Map(); // charts that show the same place when one of them is pointed at

const GAP = 34; // pixels of a time without events, where the axis is cut

/**
 * {box, set, point, end}: a chart over time, or with `over` over what that names. `set(times, columns, marks, alarms, seen)` shows series by name: {name: [value or null, …]},
 * marks [{at, number}], and alarms [{at, of}], ticks at the bottom in the ink of the series. `seen` says where lines have gaps and which range is shown: {gaps: [places
 * that a gap comes before], begins: when the events of each place began, from, to}; with `cut` a gap is as long as its words, however long it lasted. `line` draws a level, such as 1 for spend ÷ budget; the scale begins at
 * 0 or, with `low`, shows what is between `low` and `high`; `ink` tells
 * the ink of a series by its name and place.
 */
export function chart(title, { line = null, low: least = null, high = null, show = digits, ink = (_, at) => `c${at % 8}`, over = null, sync = "time" } = {}) {
  const place = el("div.plot"), box = el("figure.chart", {}, el("h3", {}, title), place);
  let times = [], columns = {}, marks = [], alarms = [], seen = {}, pointed = null, width = 0;
  const group = groups.get(sync) ?? groups.set(sync, new Set()).get(sync);
  const point = (at) => { if (at !== pointed) { pointed = at; render(); } };
  const counts = () => seen.over ?? over, days = () => times.at(-1) - times[0] > 86400;
  const told = (at) => counts() ? `${counts()} ${count(Math.round(at))}` : days() ? moment(at).slice(5, 16) : clock(at);
  const nearest = (x, wanted) => times.reduce((a, b) => Math.abs(x(b) - wanted) < Math.abs(x(a) - wanted) ? b : a);
  group.add(point);
  place.addEventListener("pointermove", (event) => {
    const { left } = place.getBoundingClientRect(), x = scale();
    if (times.length) for (const other of group) other(nearest(x, event.clientX - left));
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
  /** Stretches of the axis, [from, to] in what it counts, with their pixels: several where gaps are cut out. */
  function stretches() {
    const left = LEFT, right = width - margin(), { gaps = [], begins = times, cut = false, from = times[0], to = times.at(-1) } = seen;
    const parts = !cut ? [[from, to]] : [0, ...gaps].map((at, number) => [begins[at], times[(gaps[number] ?? times.length) - 1]]);
    const free = right - left - GAP * (parts.length - 1), least = 0.04 * free, long = parts.map(([low, top]) => top - low), all = long.reduce((a, b) => a + b, 0) || 1;
    const wanted = long.map((one) => Math.max(least, free * one / all)), sum = wanted.reduce((a, b) => a + b, 0);
    let x = left;
    return parts.map(([low, top], at) => {
      const begin = x, end = begin + wanted[at] * free / sum;
      x = end + GAP;
      return { low, top, begin, end };
    });
  }
  function scale(parts = stretches()) {
    return (at) => {
      const part = parts.findLast((one) => at >= one.low) ?? parts[0], share = part.top > part.low ? (at - part.low) / (part.top - part.low) : at < part.low ? -1 : 1;
      return part === parts.at(-1) ? part.begin + share * (part.end - part.begin) : Math.min(part.begin + share * (part.end - part.begin), part.end + GAP / 2);
    };
  }

  function render() {
    if (!width) return;
    const names = ends(), values = names.flatMap((one) => columns[one.name]).filter(Number.isFinite).sort((a, b) => a - b);
    if (!values.length) { place.replaceChildren(el("p.note", {}, times.length || !seen.nothing ? "Nothing to show yet." : seen.nothing)); return; }
    const limit = Math.min(values.at(-1), highest(values)), low = least === null ? Math.min(0, values[0], line ?? 0) : Math.max(least, values[0] - SPAN / 2);
    const reached = Math.max(line === null ? 0 : 1.2 * line, limit + 0.06 * (limit - low)) || 1, top = high === null ? reached : least === null ? high : Math.min(high, limit + SPAN / 2), right = width - margin(), bottom = HIGH - BOTTOM;
    const parts = stretches(), x = scale(parts), y = (value) => bottom - (bottom - TOP) * (Math.min(top, value) - low) / (top - low);
    const above = values.filter((value) => value > top).length, heights = spread(names.map((one) => y(one.last) + 4), LINE, TOP, bottom);
    const across = parts.flatMap(({ low: from, top: to, begin, end: stop }) => placed(counts() ? counted(from, to, stop - begin) : moments(from, to, stop - begin), from, to, stop - begin, (at) => counts() ? count(at) : days() ? moment(at).slice(5, 10) : clock(at)));
    const spoken = `${title}, ${pointed === null ? "at the end" : `at ${told(pointed)}`}: ${names.map((one) => one.text).join(", ")}.${above ? ` Above the scale: ${above} point${above > 1 ? "s" : ""}, up to ${show(values.at(-1))}.` : ""}`;
    place.replaceChildren(draw("svg", { viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH, role: "img", "aria-label": spoken },
      ...ticks(low, top, 4).flatMap((tick) => [draw("path", { d: `M${LEFT} ${y(tick)}H${right}`, class: "grid" }), draw("text", { x: LEFT - 8, y: y(tick) + 4, class: "tick end" }, digits(tick, 6))]),
      ...fitting(across.map((one) => ({ ...one, x: Math.max(LEFT - 8 + wide(one.text) / 2, Math.min(width - wide(one.text) / 2, x(one.at))) }))).map((one) => draw("text", { x: one.x, y: HIGH - 6, class: "tick middle when" }, one.text)),
      ...parts.slice(1).map((one, at) => [draw("rect", { x: parts[at].end + 3, y: TOP, width: GAP - 6, height: bottom - TOP, class: "gap" }), draw("text", { x: one.begin - GAP / 2, y: TOP + 12, class: "tick middle" }, lasted(one.low - parts[at].top))]),
      ...numbered(marks.map((one) => ({ ...one, x: x(one.at) })).filter((one) => one.x >= LEFT && one.x <= right + 1)).flatMap((one) => [
        draw("path", { d: `M${one.x} ${TOP - 4}V${bottom}`, class: "event" }), one.text && draw("text", { x: one.x, y: 10, class: "tick middle" }, one.text)]),
      line !== null && draw("path", { d: `M${LEFT} ${y(line)}H${right}`, class: "level" }),
      ...alarms.map((one) => draw("path", { d: `M${x(one.at)} ${bottom}v-9`, class: `alarm ${ink(one.of, 0)}` })),
      ...names.map((one) => draw("path", { d: joined(columns[one.name], x, y), class: `series ${one.kind}` })),
      pointed !== null && [draw("path", { d: `M${x(pointed)} ${TOP}V${bottom}`, class: "pointed" }), draw("text", { x: Math.max(LEFT + 30, Math.min(right - 30, x(pointed))), y: 10, class: "tick middle now" }, told(pointed))],
      above > 0 && draw("text", { x: right, y: 10, class: "tick end" }, `↑ ${above} up to ${show(values.at(-1))}`),
      ...names.map((one, at) => draw("text", { x: right + 6, y: heights[at], class: `word ${one.kind}` }, fitted(one.text, width - right - 6)))));
  }

  /** A line through what is known, that ends where a gap begins; a place alone is a dot. */
  function joined(column, x, y) {
    const gaps = new Set(seen.gaps ?? []);
    let pen = "M", drawn = "";
    times.forEach((at, place) => {
      if (gaps.has(place)) pen = "M";
      if (!Number.isFinite(column[place])) return;
      const spot = `${x(at).toFixed(1)} ${y(column[place]).toFixed(1)}`;
      drawn += pen === "M" ? `M${spot}h0` : `L${spot}`;
      pen = "L";
    });
    return drawn;
  }

  const end = resized(place, (found) => { width = Math.max(240, found); render(); });
  return {
    box, end: () => { end(); group.delete(point); },
    point: (at) => { for (const other of group) other(times.length ? nearest((one) => one, at) : null); },
    set: (at, found, newMarks = marks, newAlarms = alarms, newSeen = {}) => { [times, columns, marks, alarms, seen] = [at, found, newMarks, newAlarms, newSeen]; if (!times.includes(pointed)) pointed = null; render(); },
  };
}

/** Round counts between two, as many as have room. */
const counted = (from, to, room) => ticks(from, to, Math.max(1, room / (wide(count(to)) + 20))).map((at) => ({ at, text: count(at) }));

/** An axis says two places at least, where there is room: its ends, where round ones are too few. */
function placed(round, from, to, room, told) {
  const ends = [from, to].map((at) => ({ at, text: told(at) }));
  return round.length > 1 ? round : to > from && room > 2 * wide(ends[1].text) + 24 ? ends : round.length ? round : ends.slice(0, 1);
}

/** Words, the first of those that would cover each other. */
const fitting = (words) => words.reduce((kept, one) => kept.length && one.x - kept.at(-1).x < (wide(one.text) + wide(kept.at(-1).text)) / 2 + 8 ? kept : [...kept, one], []);

/** A length of time in a word. */
function lasted(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([one]) => seconds >= one) ?? [1, "s"];
  return `${Math.round(seconds / size)} ${unit}`;
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
