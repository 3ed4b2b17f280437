// The Pareto picture: dollars a request against quality.

import { LEFT, LINE, resized, ticks, wide } from "./axes.js";
import { draw, el } from "./dom.js";
import { digits, fixed, known, usd } from "./format.js";

const LOG_FROM = 10; // dearest ÷ cheapest from which the axis of dollars is logarithmic; drawing.plot does alike
const STAR = 11; // pixels from the middle of the star to its points
const ROOF = 26, FLOOR = 46, RIGHT = 14; // pixels above, below and beside the picture
export const inkOf = (at) => `c${1 + at % 7}`;

/**
 * {box, set(picture), end}. A picture is what drawing.pareto makes: models (points with intervals), mixes (the line between them), router (the star), tail
 * (its path), alone (the router without plans), budget_usd; or of a study: line (joined points with labels), dots (points of several results, with the ink of each) and arrows ([from, to] of dots). With `quiet` models are grey, as what
 * others are compared with. All of them may be left out.
 */
export function pareto({ high = 420 } = {}) {
  const box = el("figure.pareto");
  let picture = null, width = 0;
  const show = () => { if (picture && width) box.replaceChildren(pictured(picture, Math.max(280, width), high)); };
  const end = resized(box, (found) => { width = found; show(); });
  return { box, end, set: (found) => { picture = found; show(); } };
}

function pictured({ models = [], mixes = [], router = null, tail = [], budget_usd = null, line = [], dots = [], arrows = [], quiet = false, mixed = "fixed mixes", sentence = "", alone = null }, width, high) {
  const points = [...models, ...(router ? [router] : []), ...(alone ? [alone] : []), ...line, ...dots].filter((one) => known(one.cost_usd) && known(one.quality));
  if (!points.some((one) => one.cost_usd > 0)) return el("p.note", {}, "Without bills and labels there is nothing to draw.");
  const height = Math.round(Math.min(high, Math.max(280, 0.62 * width))), right = width - RIGHT, bottom = height - FLOOR;
  const costs = [...points.map((one) => one.cost_usd), ...tail.map(([cost]) => cost)].filter((cost) => cost > 0);
  const log = Math.max(...costs) >= LOG_FROM * Math.min(...costs), scale = log ? Math.log10 : (cost) => cost;
  const [first, last] = log ? widened([...costs, budget_usd].filter((one) => one > 0).map(scale), 0.07, 0.2) : [0, 1.08 * Math.max(...costs)];
  const [low, top] = widened([...points.flatMap((one) => [one.quality - (one.off ?? 0), one.quality + (one.off ?? 0)]), ...tail.map(([, quality]) => quality)], 0.09, 0.02);
  const x = (cost) => LEFT + (right - LEFT) * Math.min(1, Math.max(0, ((cost > 0 || !log ? scale(cost) : first) - first) / (last - first)));
  const y = (quality) => bottom - (bottom - ROOF) * (quality - low) / (top - low);
  const at = (one) => [x(one.cost_usd), y(one.quality)];
  const taken = points.map(at).map(([across, down]) => around(across, down, 6));
  const ways = alone ? [...arrows, [alone, router]] : arrows;
  for (const one of [router, alone]) if (one) taken.push(around(...at(one), STAR));
  taken.push(...models.map((one) => ({ left: at(one)[0] - 2, right: at(one)[0] + 2, top: y(one.quality + (one.off ?? 0)), bottom: y(one.quality - (one.off ?? 0)) })));
  const curve = bent(mixes, x, y);
  taken.push(...curve.map(([across, down]) => around(across, down, 2)));
  for (const [from, to] of ways) taken.push(...Array.from({ length: 24 }, (_, step) => between(at(from), at(to), (step + 1) / 25)));
  const budget = budget_usd > 0 && x(budget_usd) < right && { left: x(budget_usd), right: x(budget_usd) + 10 + wide(`budget ${usd(budget_usd)}`), top: ROOF - 10, bottom: ROOF + 8 };
  if (budget) taken.push(budget);
  const place = placing(taken, { left: LEFT, right: width - 2, top: ROOF - 12, bottom });
  const word = (text, one, kind = "", gap = 8) => draw("text", { ...place(text, ...at(one), gap), class: `word ${kind}` }, text);
  const rows = ticks(low, top, 7), columns = log ? decades(first, last, width) : ticks(first, last, width < 500 ? 3 : 5);
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": sentence || "Quality against dollars a request" },
    ...rows.flatMap((row) => [draw("path", { d: `M${LEFT} ${y(row)}H${right}`, class: "grid" }), draw("text", { x: LEFT - 8, y: y(row) + 4, class: "tick end" }, digits(row, 6))]),
    ...columns.map((cost) => draw("text", { x: x(cost), y: bottom + 18, class: "tick middle" }, usd(cost))),
    draw("text", { x: 0, y: 12, class: "tick" }, "quality"), draw("text", { x: right, y: height - 6, class: "tick end" }, "dollars a request"),
    models.some((one) => one.measured === false) && draw("text", { x: LEFT, y: height - 6, class: "tick" }, "◌ hardly called: as expected"),
    curve.length > 1 && draw("path", { d: `${path(curve)}V${bottom}H${curve[0][0]}Z`, class: "reached" }), curve.length > 1 && draw("path", { d: path(curve), class: "mixes" }),
    budget && [draw("path", { d: `M${x(budget_usd)} ${ROOF - 6}V${bottom}`, class: "budget" }), draw("text", { x: budget.left + 6, y: ROOF + 4, class: "tick" }, `budget ${usd(budget_usd)}`)],
    ...tail.slice(1).map((one, number) => draw("path", { d: path([tail[number], one].map(([cost, quality]) => [x(cost), y(quality)])), class: "tail", opacity: (0.15 + 0.75 * (number + 1) / tail.length).toFixed(2) })),
    line.length > 1 && draw("path", { d: path(line.map(at)), class: "joined" }),
    ...line.flatMap((one) => [draw("circle", { cx: at(one)[0], cy: at(one)[1], r: 4, class: "joint" }), one.name && word(one.name, one)]),
    ...models.flatMap((one, number) => model(one, quiet ? "quiet" : inkOf(number), at(one), x, y)),
    ...ways.map(([from, to]) => arrow(at(from), at(to))),
    ...dots.map((one) => draw("circle", { cx: at(one)[0], cy: at(one)[1], r: 5, class: `dot ${one.ink}` }, draw("title", {}, `${one.name}: ${told(one)}`))),
    alone && [draw("path", { d: star(...at(alone)), class: "star alone" }, draw("title", {}, `${alone.name}, as expected: ${told(alone)}`)), word(alone.name, alone, "", STAR + 4)],
    router && draw("path", { d: star(...at(router)), class: "star" }, draw("title", {}, `this router: ${told(router)}`)),
    router && word("this router", router, "bold", STAR + 4),
    ...dots.map((one) => word(one.name.split("/").at(-1).slice(-24), one, one.ink)),
    ...models.map((one, number) => word(one.name.split("/").at(-1).slice(-24), one, quiet ? "quiet" : inkOf(number))),
    named(curve, mixed, taken, bottom));
}

/** A model: its point, filled where bills and labels say so, and its intervals as far as they are known. */
function model(one, ink, [across, down], x, y) {
  const bars = [one.off && `M${across} ${y(one.quality - one.off)}V${y(one.quality + one.off)}`, one.cost_off && `M${x(one.cost_usd - one.cost_off)} ${down}H${x(one.cost_usd + one.cost_off)}`];
  return [draw("path", { d: bars.filter(Boolean).join(""), class: `interval ${ink}` }),
    draw("circle", { cx: across, cy: down, r: 6, class: `model ${ink}${one.measured === false ? " expected" : ""}` }, draw("title", {}, `${one.name}: ${told(one)}`))];
}

/** An arrow from one point to near another. */
function arrow([from, high], [to, low]) {
  const long = Math.hypot(to - from, low - high);
  if (long < 26) return null;
  const [across, down] = [(to - from) / long, (low - high) / long], [x, y] = [to - 9 * across, low - 9 * down];
  const wing = (side) => `${(x - 8 * across + side * 4.5 * down).toFixed(1)} ${(y - 8 * down - side * 4.5 * across).toFixed(1)}`;
  return draw("path", { class: "arrow", d: `M${from + 8 * across} ${high + 8 * down}L${x.toFixed(1)} ${y.toFixed(1)}M${wing(1)}L${x.toFixed(1)} ${y.toFixed(1)}L${wing(-1)}` });
}

const told = (one) => `quality ${fixed(one.quality)}${one.off ? ` ± ${fixed(one.off)}` : ""} at ${usd(one.cost_usd)} a request`;
const path = (points) => points.map(([across, down], at) => `${at ? "L" : "M"}${across.toFixed(1)} ${down.toFixed(1)}`).join("");
const around = (x, y, by) => ({ left: x - by, right: x + by, top: y - by, bottom: y + by });

const between = ([x, y], [right, down], share) => around(x + share * (right - x), y + share * (down - y), 3);

/** Between two corners a mix is a line in dollars, which a logarithmic axis bends. */
function bent(corners, x, y) {
  return corners.flatMap(([cost, quality], at) => {
    if (!at) return [[x(cost), y(quality)]];
    const [before, lower] = corners[at - 1], from = x(before), to = x(cost);
    let share = 0;
    return Array.from({ length: 32 }, (_, step) => {
      const wanted = from + (to - from) * (step + 1) / 32; // by halves, so that any axis will do
      for (let low = share, high = 1, turn = 0; turn < 24; turn++) { share = (low + high) / 2; if (x(before + share * (cost - before)) < wanted) low = share; else high = share; }
      return [wanted, y(lower + share * (quality - lower))];
    });
  });
}

/** A name for the line of mixes below it, where there is room. */
function named(curve, text, taken, bottom) {
  const long = wide(text) / 2 + 4, boxes = [0.7, 0.6, 0.8, 0.5, 0.4].map((share) => curve[Math.floor(share * curve.length)]).filter((one) => one && curve.length > 32 + 1)
    .map(([across, down]) => ({ left: across - long, right: across + long, top: down + 6, bottom: down + 6 + LINE }));
  const free = boxes.find((box) => box.bottom < bottom && !taken.some((one) => meet(one, box)));
  return free && draw("text", { x: free.left + long, y: free.bottom - 4, class: "tick middle" }, text);
}

const meet = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

function star(x, y) {
  const corner = (at) => { const far = at % 2 ? 0.42 * STAR : STAR, turn = Math.PI * (at / 5 - 0.5); return [x + far * Math.cos(turn), y + far * Math.sin(turn)]; };
  return `${path(Array.from({ length: 10 }, (_, at) => corner(at)))}Z`;
}

/** Where words go: beside their point, above or below it, and further away until they cover nothing that is taken. */
function placing(taken, edge) {
  return (text, x, y, gap) => {
    const long = wide(text, true) + 4, boxes = [];
    for (let away = 0; away < 8; away++) for (const [left, down] of [[x + gap, 4], [x - gap - long, 4], [x + gap, -gap - 3], [x - gap - long, -gap - 3], [x + gap, gap + LINE - 4], [x - gap - long, gap + LINE - 4]]) {
      const start = Math.max(edge.left, Math.min(edge.right - long, left)), foot = y + down + (down < 0 ? -1 : 1) * away * LINE;
      boxes.push({ left: start, right: start + long, top: foot - LINE + 4, bottom: foot + 3 });
    }
    const free = boxes.find((box) => box.top > edge.top && box.bottom < edge.bottom && !taken.some((one) => meet(one, box))) ?? boxes[0];
    taken.push(free);
    return { x: free.left, y: free.bottom - 3 };
  };
}

/** Powers of ten on the axis, with steps between them where they are few. */
function decades(first, last, width) {
  const some = (steps) => Array.from({ length: Math.ceil(last) - Math.floor(first) + 1 }, (_, at) => steps.map((step) => step * 10 ** (Math.floor(first) + at))).flat()
    .map((one) => Number(one.toPrecision(3))).filter((one) => Math.log10(one) >= first && Math.log10(one) <= last);
  const found = some([1]);
  return found.length > 2 || width < 500 && found.length > 1 ? found : some([1, 2, 5]).filter((_, at, all) => all.length < 6 || at % 2 === 0);
}

function widened(values, by, least) {
  const low = Math.min(...values), top = Math.max(...values), more = Math.max(by * (top - low), least / 2);
  return [low - more, top + more];
}
