// Charts over time with one axis, and the events that explain them as numbered lines.

import uPlot from "./vendor/uPlot.mjs";
import { el } from "./dom.js";

// The table of all routers needs neither: both are loaded with the first page that draws.
await new Promise((done) => document.head.append(
  el("link", { rel: "stylesheet", href: "assets/vendor/uPlot.css", onload: done, onerror: done })));

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const palette = (at) => `--c${at % 8}`;

/**
 * A chart over time, or with `over` over what that names. `set(times, columns, marks)` shows series by name: {name: [value or null, …]}, and marks
 * [{at, number}]. `line` draws a level, such as 1 for spend ÷ budget.
 */
export function chart(title, { line = null, high = null, show = (value) => value.toPrecision(3), pick, over = null, sync = "time" } = {}) {
  const place = el("div", { "aria-hidden": "true" });
  const spoken = el("figcaption.note");
  const box = el("figure.chart", {}, el("h3", {}, title), place, spoken);
  box.style.margin = "0";
  let plot = null, names = "", marks = [], last = null;

  function build(labels) {
    plot?.destroy();
    const ink = colour("--soft"), grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
    plot = new uPlot({
      width: Math.max(240, box.clientWidth), height: 190,
      cursor: { sync: { key: sync }, drag: { x: true, y: false } },
      scales: { x: { time: !over }, y: { range: (_, low, top) => range(low, top) } },
      axes: [over ? { ...axis, values: (_, values) => values.map((value) => value.toLocaleString("en")) } : { ...axis }, { ...axis, size: 56, values: (_, values) => values.map((value) => String(Number(value.toPrecision(6)))) }],
      series: [over ? { label: over, value: (_, value) => value === null ? "–" : Math.round(value).toLocaleString("en") } : { value: "{HH}:{mm}:{ss}" }, ...labels.map((label, at) => ({
        label, stroke: colour(pick?.(label) ?? palette(at)), width: 1.8, spanGaps: true, points: { show: false },
        value: (_, value) => value === null ? "–" : show(value) }))],
      hooks: { draw: [drawMarks] },
    }, [[], ...labels.map(() => [])], place);
  }

  function range(low, top) {
    if (low === null || top === null) return [0, high ?? 1];
    const least = Math.min(0, low, line ?? 0);
    return [least, Math.max(high ?? 0, line === null ? 0 : 1.2 * line, top + 0.06 * (top - least)) || 1];
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
      ctx.fillText(String(mark.number), x, bbox.top - 2 * ratio);
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

  function set(times, columns, newMarks = marks) {
    last = [times, columns];
    marks = newMarks;
    const labels = Object.keys(columns);
    if (!plot || labels.join("\n") !== names) build(labels);
    names = labels.join("\n");
    plot.setData([times, ...Object.values(columns)]);
    const ends = labels.map((label) => [label, columns[label].findLast((value) => value !== null && value !== undefined)]);
    const told = ends.filter(([, value]) => value !== undefined).map(([label, value]) => `${label} ${show(value)}`);
    spoken.textContent = told.length ? `${over ? "At the end" : "Now"}: ${told.join(", ")}.` : "Nothing to show yet.";
  }

  const sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(240, box.clientWidth), height: 190 }));
  sized.observe(box);
  const recolour = () => { if (last) { names = ""; set(...last); } };
  dark.addEventListener("change", recolour);
  return { box, set, end: () => { sized.disconnect(); dark.removeEventListener("change", recolour); plot?.destroy(); } };
}
