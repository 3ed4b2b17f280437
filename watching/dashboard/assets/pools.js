// All pools: what each has, what is lent of it and spent, and who has the leases.

import { draw, el, page, table } from "./dom.js";
import { clock, known, moment, percent, usd } from "./format.js";
import { follow } from "./live.js";

const COLOURS = 7; // routers with a colour of their own; the others are one

/** Show the page; returns what ends it. */
export function showPools(view) {
  const box = el("div");
  let told = "";
  view.append(el("h1", {}, "Pools"), box);
  follow("api/pools", ({ pools }) => {
    const now = JSON.stringify(pools);
    if (!pools || now === told) return;
    told = now;
    box.replaceChildren(...(pools.length ? pools.map(pool) : [none()]));
  });
  return () => {};
}

function pool(one) {
  const shares = Object.entries(one.members).map(([id, [least, most]]) => `${id} ${percent(least)} to ${percent(most)}`);
  const notes = [one.parent && `It has part in pool ${one.parent}.`, !one.declared && "It is declared no more: nothing more is lent.",
    shares.length && `Shares: ${shares.join(", ")}.`, one.lines.length || one.parent ? "" : "It has no budget."].filter(Boolean);
  return el("section", {}, el("h2", {}, one.pool_id), notes.length ? el("p.note", {}, notes.join(" ")) : null, ...one.lines.map(line));
}

function line(one) {
  const per = one.per === "dates" ? "between dates" : `per ${one.per}`;
  const whole = known(one.usd) ? `${usd(one.usd)} ${per}` : `A budget ${per} that is declared no more`;
  const said = `${whole}: ${usd(one.lent_usd)} lent, ${usd(one.charged_usd)} spent${one.ends ? `, until ${moment(one.ends)}` : ""}.`;
  return el("div", {}, el("p", {}, said), one.leases.length ? picture(one, said) : el("p.note", {}, "No router has a lease of it yet."),
    one.leases.length ? table(`Leases of ${one.name}${one.more ? `, the largest; ${one.more} more` : ""}`,
      ["Router", "Lent", "Spent", "Left", "Lease until"].map((label, at) => ({ label, number: at > 0 })),
      one.leases.map((lease) => [el("a", { href: page("router", lease.router_id) }, lease.router_id, lease.binds ? " (binds)" : ""),
        usd(lease.usd), usd(lease.charged_usd), usd(lease.left_usd), lease.until ? clock(lease.until) : null])) : null);
}

/** A bar as long as the budget: what each router was lent, and in full colour what it has spent. */
function picture(one, said) {
  const parts = one.leases.slice(0, COLOURS), rest = one.leases.slice(COLOURS);
  if (rest.length || one.more) {
    const sum = (name) => one[name] - parts.reduce((total, part) => total + part[name === "lent_usd" ? "usd" : name], 0);
    parts.push({ router_id: `${rest.length + one.more} others`, usd: sum("lent_usd"), charged_usd: sum("charged_usd") });
  }
  const all = Math.max(one.usd ?? 0, one.lent_usd, one.charged_usd) || 1, bar = draw("svg", { class: "bar", viewBox: "0 0 1000 20", preserveAspectRatio: "none", role: "img", "aria-label": said });
  let from = 0;
  parts.forEach((part, at) => {
    const wide = (dollars) => Math.max(0, 1000 * dollars / all);
    bar.append(draw("rect", { class: `c${at} lent`, x: from, y: 0, width: wide(part.usd), height: 20 }),
      draw("rect", { class: `c${at}`, x: from, y: 4, width: Math.min(wide(part.charged_usd), wide(Math.max(part.usd, part.charged_usd))), height: 12 }));
    from += wide(part.usd);
  });
  const ink = (at) => draw("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, draw("rect", { class: `c${at}`, width: 12, height: 12 }));
  return el("figure", {}, bar, el("p.inks", {}, ...parts.map((part, at) => el("span", {}, ink(at), part.router_id)),
    el("span", {}, "light: lent, full: spent")));
}

const none = () => el("div.empty", {}, el("h2", {}, "No pool yet"), el("p", {}, "A pool is one budget for several routers. Declare one, and let routers join it:"),
  el("pre", {}, "pbstream pools set shop 20000 --per month\npbstream pools join shop --router chat"));
