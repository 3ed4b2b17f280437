// A report: charts, tables and lists of what Python found, below the answer, which the document itself says.

import { figures, picture } from "./figures.js";
import { draw, el, table } from "./dom.js";

const report = JSON.parse(document.getElementById("report").textContent);
const under = (title, ...parts) => [el("h2", {}, title), ...parts];
const key = (kind, name) => el("span", {}, draw("svg", { "aria-hidden": "true", viewBox: "0 0 12 12" }, draw("path", { d: "M0 6H12", class: `line ${kind}` })), name);

const parts = [];
if (report.charts.length) parts.push(...under(`Over the ${report.over}s`, ...figures(report, { open: true }).parts));
if (report.frontier) {
  const { points, others, mix, named } = report.frontier;
  parts.push(...under("What a budget buys", el("figure.frontier", {}, picture(points, others, null, mix),
    el("figcaption.legend", {}, key("", named.points), key("mix", named.mix)))));
}
for (const one of report.tables) parts.push(...under(one.title, table(one.caption, one.heads, one.rows)));
for (const [title, items] of Object.entries(report.lists)) parts.push(...under(title, el("ul", {}, ...items.map((item) => el("li", {}, item)))));
document.querySelector("main").append(...parts);
