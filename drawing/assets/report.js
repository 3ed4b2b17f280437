// A report: picture, charts, tables and lists of what Python found, below the answer, which the document itself says.

import { el, table, tiles } from "./dom.js";
import { figures } from "./figures.js";
import { pareto } from "./pareto.js";

const report = JSON.parse(document.getElementById("report").textContent);
const main = document.querySelector("main"), under = (title, ...parts) => [el("h2", {}, title), ...parts];
if (report.pareto) {
  const picture = pareto();
  picture.set(report.pareto);
  const facts = tiles();
  facts.set(report.facts);
  document.querySelector(".answer").after(el("div.lead", {}, picture.box, report.facts.length ? facts.box : null));
}
if (report.charts.length) main.append(...under(`Over the ${report.over}s`, ...figures(report, { open: true }).parts));
for (const one of report.tables) main.append(...under(one.title, table(one.caption, one.heads, one.rows)));
for (const [title, items] of Object.entries(report.lists)) main.append(...under(title, el("ul", {}, ...items.map((item) => el("li", {}, item)))));
