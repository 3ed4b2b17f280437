// All pools: the dollars of each, granted and spent, and who holds them.

import { draw, el, page, table } from "./dom.js";
import { clock, known, percent, usd } from "./format.js";
import { follow } from "./live.js";
import { standing } from "./money.js";

const COLOURS = 7; // routers with a colour of their own; the others are one

/** Show the page of all pools, or of one; returns what ends it. */
export function showPools(view, id) {
  const box = el("div");
  let told = "";
  view.append(el("h1", {}, id ? `Pool ${id}` : "Pools"), box);
  follow("api/pools", ({ pools }) => {
    const now = JSON.stringify(pools);
    if (!pools || now === told) return;
    told = now;
    const shown = pools.filter((one) => !id || one.pool_id === id);
    box.replaceChildren(...(shown.length ? shown.map(pool) : id ? [el("p", {}, "The topics that were read name no pool of this id that you may see. ", el("a", { href: "#/pools" }, "All pools"), ".")] : [none()]));
  });
  return () => {};
}

function pool(one) {
  const shares = Object.entries(one.members).map(([id, [least, most]]) => `${id} ${percent(least)} to ${percent(most)}`);
  const notes = [one.parent && ["It has part in pool ", el("a", { href: page("pools", one.parent) }, one.parent), ". "], !one.declared && "It is declared no more: nothing more is lent.",
    shares.length && `Shares: ${shares.join(", ")}.`, one.lines.length || one.parent ? "" : "It has no budget."].filter(Boolean);
  return el("section", {}, el("h2", {}, el("a", { href: page("pools", one.pool_id) }, one.pool_id)), notes.length ? el("p.note", {}, ...notes.flatMap((note) => typeof note === "string" ? [`${note} `] : note)) : null, ...one.lines.map(line));
}

function line(one) {
  const per = one.per === "dates" ? "between dates" : `per ${one.per}`;
  const title = known(one.usd) ? `${usd(one.usd)} ${per}` : `A budget ${per} that is declared no more`, parts = shares(one);
  const whole = standing({ title, usd: one.usd, charged_usd: one.charged_usd, forecast: one.forecast_usd, ends: one.ends,
    parts: parts.map((part) => ({ lent: part.usd, charged: part.charged_usd })) });
  if (!one.leases.length) return el("div", {}, whole, el("p.note", {}, "No router has a grant of it yet."));
  return el("div", {}, whole, el("p.inks", {}, ...parts.map((part, at) => el("span", {}, ink(at), part.router_id)), el("span", {}, "full: spent, light: granted, whisker: forecast at its end")),
    el("p.note", {}, `${usd(one.lent_usd)} granted, ${usd(one.charged_usd)} spent. ${one.why ? `Grants: ${one.why}.` : ""}`),
    table(`Who holds what of ${one.name}${one.more ? `, the largest; ${one.more} more` : ""}`,
      ["Router", "Granted", "Spent", "Left", "Forecast", "Granted until"].map((label, at) => ({ label, number: at > 0 })),
      one.leases.map((lease) => [el("a", { href: page("router", lease.router_id) }, lease.router_id, lease.binds ? " (binds)" : ""),
        usd(lease.usd), usd(lease.charged_usd), usd(lease.left_usd), usd(lease.forecast_usd), lease.until ? clock(lease.until) : null])));
}

/** Those that hold most, and the others as one. */
function shares(one) {
  const parts = one.leases.slice(0, COLOURS), rest = one.leases.slice(COLOURS);
  if (!rest.length && !one.more) return parts;
  const sum = (name) => one[name] - parts.reduce((total, part) => total + part[name === "lent_usd" ? "usd" : name], 0);
  return [...parts, { router_id: `${rest.length + one.more} others`, usd: sum("lent_usd"), charged_usd: sum("charged_usd") }];
}

const ink = (at) => draw("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, draw("rect", { class: `c${at}`, width: 12, height: 12 }));

const none = () => el("div.empty", {}, el("h2", {}, "No pool yet"), el("p", {}, "A pool is one budget for several routers. Declare one, and let routers join it:"),
  el("pre", {}, "pbstream pools set shop 20000 --per month\npbstream pools join shop --router chat"));
