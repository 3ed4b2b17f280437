// Charts over time with one axis, and the events that explain them as numbered lines.

import uPlot from "./plotter.js";
import { el } from "./dom.js";
import { digits } from "./format.js";

// A single dear bill may be 200 budgets, and would flatten all else. What is as high as this in medians, and as rare, does not stretch the scale.
const OUTLIER_MEDIANS = 6, OUTLIERS_SHARE = 0.05;

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const palette = (at) => `--c${at % 8}`;

/**
 * A chart over time, or with `over` over what that names. `set(times, columns, marks)` shows series by name: {name: [value or null, …]}, and marks
 * [{at, number}]; alarms are [{at, of}], ticks at the bottom in the colour of the series. `line` draws a level, such as 1 for spend ÷ budget.
 */
export function chart(title, { line = null, high = null, show = digits, pick, over = null, sync = "time" } = {}) {
  const place = el("div", { "aria-hidden": "true" });
  const spoken = el("figcaption.note");
  const box = el("figure.chart", {}, el("h3", {}, title), place, spoken);
  box.style.margin = "0";
  let plot = null, names = "", marks = [], alarms = [], last = null, limit = Infinity;

  function build(labels) {
    plot?.destroy();
    const ink = colour("--soft"), grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
    plot = new uPlot({
      width: Math.max(240, box.clientWidth), height: 190, padding: [16, 12, 0, 0],
      cursor: { sync: { key: sync }, drag: { x: true, y: false } },
      scales: { x: { time: !over }, y: { range: (_, low, top) => range(low, top) } },
      axes: [over ? { ...axis, values: (_, values) => values.map((value) => value.toLocaleString("en")) } : { ...axis, values: (_, values, at, space, step) => moments(values, step) }, { ...axis, size: 56, values: (_, values) => values.map((value) => digits(value, 6)) }],
      series: [over ? { label: over, value: (_, value) => value === null ? "–" : Math.round(value).toLocaleString("en") } : { value: "{HH}:{mm}:{ss}" }, ...labels.map((label, at) => ({
        label, stroke: colour(pick?.(label) ?? palette(at)), width: 1.8, spanGaps: true, points: { show: false },
        value: (_, value) => value === null ? "–" : show(value) }))],
      hooks: { draw: [drawMarks, drawAlarms] },
    }, [[], ...labels.map(() => [])], place);
  }

  function range(low, top) {
    if (low === null || top === null) return [0, high ?? 1];
    const least = Math.min(0, low, line ?? 0);
    return [least, end(least, top)];
  }

  /** Where the scale ends. */
  function end(least, top) {
    const shown = Math.min(top, limit);
    return Math.max(high ?? 0, line === null ? 0 : 1.2 * line, shown + 0.06 * (shown - least)) || 1;
  }

  function drawAlarms(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    for (const alarm of alarms) {
      const x = u.valToPos(alarm.at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.fillStyle = colour(pick?.(alarm.of) ?? palette(0));
      ctx.fillRect(x - ratio, bbox.top + bbox.height - 9 * ratio, 2 * ratio, 9 * ratio);
    }
    ctx.restore();
  }

  function drawMarks(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui`;
    ctx.textAlign = "center";
    if (line !== null) rule(ctx, bbox.left, u.valToPos(line, "y", true), bbox.left + bbox.width, null, colour("--soft"));
    for (const mark of marks) {
      const x = u.valToPos(mark.at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      rule(ctx, x, bbox.top, null, bbox.top + bbox.height, colour("--bad"));
      ctx.fillStyle = colour("--bad");
      ctx.fillText(String(mark.number), x, bbox.top - 4 * ratio);
    }
    ctx.restore();
  }

  function rule(ctx, x, y, right, bottom, stroke) {
    ctx.beginPath();
    ctx.setLineDash([4, 4]);
    ctx.strokeStyle = stroke;
    ctx.moveTo(x, y);
    ctx.lineTo(right ?? x, bottom ?? y);
    ctx.stroke();
  }

  function set(times, columns, newMarks = marks, newAlarms = alarms) {
    last = [times, columns];
    [marks, alarms] = [newMarks, newAlarms];
    const values = Object.values(columns).flat().filter(Number.isFinite).sort((a, b) => a - b);
    limit = highest(values);
    const labels = Object.keys(columns);
    if (!plot || labels.join("\n") !== names) build(labels);
    names = labels.join("\n");
    plot.setData([times, ...Object.values(columns)]);
    const ends = labels.map((label) => [label, columns[label].findLast((value) => value !== null && value !== undefined)]);
    const told = ends.filter(([, value]) => value !== undefined).map(([label, value]) => `${label} ${show(value)}`);
    spoken.textContent = told.length ? `${over ? "At the end" : "Now"}: ${told.join(", ")}.${cut(values)}` : "Nothing to show yet.";
  }

  /** What the scale leaves out. */
  function cut(values) {
    const top = end(Math.min(0, values[0]), limit), many = values.filter((value) => value > top).length;
    return many ? ` Above the scale: ${many} point${many > 1 ? "s" : ""}, up to ${show(values.at(-1))}.` : "";
  }

  const sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(240, box.clientWidth), height: 190 }));
  sized.observe(box);
  const recolour = () => { if (last) { names = ""; set(...last); } };
  dark.addEventListener("change", recolour);
  return { box, set, end: () => { sized.disconnect(); dark.removeEventListener("change", recolour); plot?.destroy(); } };
}

/** Ticks of an axis of time, seconds since 1970 and `step` apart: days, or times with the day below the first of each. */
function moments(values, step) {
  let before = "";
  return values.map((value) => {
    const at = new Date(1000 * value), day = at.toLocaleDateString([], { day: "numeric", month: "short" });
    if (step >= 86400) return day;
    const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...(step < 60 ? { second: "2-digit" } : {}) });
    const tick = day === before ? time : `${time}\n${day}`;
    before = day;
    return tick;
  });
}

/** The highest of sorted values that is no outlier. */
function highest(values) {
  const most = OUTLIER_MEDIANS * values[values.length >> 1], within = values.findLastIndex((value) => value <= most) + 1;
  return most > 0 && values.length - within <= OUTLIERS_SHARE * values.length ? values[within - 1] : values.at(-1) ?? Infinity;
}
