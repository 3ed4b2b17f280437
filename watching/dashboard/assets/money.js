// How a budget of a period stands: what is used of it, what is left, how it will end, and for how long it goes on.

import { draw, el, page, tiles } from "./dom.js";
import { count, known, usd } from "./format.js";

const NAMES = { dates: "between dates" };
const DAY = 86400;

/** {box, take(budgets, asked)}: a router's own budgets of a period, and what pools grant it, as the worker tells of them. */
export function budgets() {
  const box = el("section", { "aria-label": "Budgets of a period", hidden: true });
  let told = "";
  const take = (found, asked) => {
    box.hidden = !found.length;
    const now = JSON.stringify([found, asked]);
    if (now === told) return;
    told = now;
    box.replaceChildren(el("h2", {}, "Money of the period"), ...found.map((one) => standing({
      pool: one.pool, title: one.line ? `${usd(one.usd)} granted by ${one.line}` : `${usd(one.usd)} ${NAMES[one.period] ?? `per ${one.period}`}`, usd: one.usd, charged_usd: one.charged_usd,
      forecast: asked && one.left_usd > 0 ? [one.forecast_usd, one.forecast_low_usd, one.forecast_high_usd] : null, ends: Date.parse(one.ends) / 1000,
      enough: `${asked ? `for some ${count(one.requests_left)} requests, ${usd(one.per_request_usd)} each` : ""}${one.binds ? `${asked ? "; " : ""}it binds` : ""}`,
    })));
  };
  return { box, take };
}

/** A budget: its bar and its four numbers. `parts` are the members that hold it: [{lent, charged}] in dollars. */
export function standing({ title, usd: whole, charged_usd: charged, forecast, ends, parts = null, enough = "", pool = null }) {
  const facts = tiles(), over = ends - Date.now() / 1000 <= 0, left = known(whole) ? whole - charged : null;
  facts.set([["Spent", usd(charged), known(whole) ? `of ${usd(whole)}` : ""],
    ["Left", !known(left) ? "–" : usd(left), known(left) && left <= 0 ? "nothing more may be spent" : enough || (whole > 0 ? `${Math.round(100 * left / whole)}% of it` : "")],
    ["Forecast at its end", forecast && !over ? usd(Number(forecast[0].toPrecision(3))) : "–", forecast && !over ? `${usd(Number(forecast[1].toPrecision(3)))} to ${usd(Number(forecast[2].toPrecision(3)))} spent` : over ? "the period is over" : known(left) && left <= 0 ? "nothing is left" : "no traffic seen yet"],
    ["Time left", !ends ? "–" : over ? "ended" : days(ends), ends ? `until ${new Date(1000 * ends).toLocaleString("sv").slice(0, 16)}` : ""]]);
  return el("figure.money", {}, el("h3", {}, title, pool ? [" (", el("a", { href: page("pools", pool) }, "the pool"), ")"] : null), bar(whole, charged, over ? null : forecast, parts, title), facts.box);
}

function days(ends) {
  const seconds = ends - Date.now() / 1000;
  return seconds >= DAY ? `${(seconds / DAY).toFixed(1)} days` : `${(seconds / 3600).toFixed(1)} hours`;
}

/** From nothing to the budget, or as far as the forecast goes beyond it: full colour is spent, light is lent beyond that, the whisker is the forecast. */
function bar(whole, charged, forecast, parts, title) {
  const lent = (parts ?? []).reduce((sum, one) => sum + one.lent, 0), all = Math.max(whole ?? 0, charged, lent, forecast?.[2] ?? 0) || 1, x = (dollars) => 1000 * Math.max(0, Math.min(all, dollars)) / all;
  const said = `${title}: ${usd(charged)} spent${forecast ? `, at its end ${usd(forecast[0])} (${usd(forecast[1])} to ${usd(forecast[2])})` : ""}`;
  const made = draw("svg", { class: "bar money", viewBox: "0 0 1000 40", preserveAspectRatio: "none", role: "img", "aria-label": said }, draw("rect", { class: "whole", x: 0, y: 8, width: x(whole ?? all), height: 24 }));
  if (parts) {
    let from = 0;
    // What is spent comes first, of all, so that the bar says it at one look.
    for (const [kind, dollars] of [["", (one) => one.charged], [" lent", (one) => Math.max(0, one.lent - one.charged)]]) parts.forEach((one, at) => {
      made.append(draw("rect", { class: `c${at % 8}${kind}`, x: x(from), y: 8, width: x(from + dollars(one)) - x(from), height: 24 }));
      from += dollars(one);
    });
  } else made.append(draw("rect", { class: "mean", x: 0, y: 8, width: x(charged), height: 24 }));
  if (forecast) made.append(draw("path", { class: "off", d: `M${x(forecast[1])} 12v16M${x(forecast[1])} 20H${x(forecast[2])}M${x(forecast[2])} 12v16`, "vector-effect": "non-scaling-stroke" }),
    draw("path", { class: "expected-end", d: `M${x(forecast[0])} 3v34`, "vector-effect": "non-scaling-stroke" }));
  if (known(whole) && all > whole) made.append(draw("path", { class: "limit", d: `M${x(whole)} 0v40`, "vector-effect": "non-scaling-stroke" }));
  return made;
}
