// A few routers beside each other: their figures, their places in one picture, and their trends.

import { el, page, table } from "./dom.js";
import { chart } from "./chart.js";
import { count, dual, fixed, off, percent, usd } from "./format.js";
import { follow } from "./live.js";
import { pareto } from "./pareto.js";
import { PASSING, cut, ranges } from "./ranges.js";

const MOST = 7;

/** Show the page of routers with these names; returns what ends it. */
export function showCompared(view, ...names) {
  const ids = [...new Set(names)].slice(0, MOST);
  const place = el("div"), picture = pareto(), ink = (name) => `c${ids.indexOf(name) % 8}`, range = ranges(() => show());
  const charts = { reward: chart("Quality", { low: 0, high: 1, show: fixed, ink, sync: "compared" }), ratio: chart("Spend ÷ budget", { line: 1, show: (value) => fixed(value, 2), ink, sync: "compared" }) };
  const name = el("input", { id: "another", required: true, autocomplete: "off", maxlength: 200, list: "known" }), known = el("datalist", { id: "known" });
  const more = el("form.tools", { hidden: ids.length >= MOST, onsubmit: add }, el("label", { for: "another" }, "Another router"), name, known, el("button", { type: "submit" }, "Compare"));
  const shown = el("div", { hidden: true }, place, el("h2", {}, "Cost and quality"), picture.box, el("h2", {}, "Trends"), range.box, el("div.charts", {}, ...Object.values(charts).map((one) => one.box)));
  let last = null, ahead = 0; // seconds that the server's clock is ahead
  view.append(el("h1", {}, "Routers compared"), more, ids.length ? "" : el("p", {}, `Name up to ${MOST} routers.`), shown);
  suggest();
  if (ids.length) follow(`api/compared?${new URLSearchParams(ids.map((id) => ["router", id]))}`, (found) => {
    if (!found.routers) return;
    [last, ahead] = [found, found.now - Date.now() / 1000];
    shown.hidden = false;
    show();
  });
  const passing = setInterval(show, PASSING);
  return () => { clearInterval(passing); picture.end(); for (const one of Object.values(charts)) one.end(); };

  function show() {
    if (!last) return;
    const missing = ids.filter((id) => !last.routers.some((one) => one.router_id === id));
    place.replaceChildren(missing.length ? el("p.warn", {}, `The topics that were read name no router ${missing.join(", ")}.`) : "", figures(last.routers));
    picture.set({ dots: last.routers.filter((one) => one.cost_usd !== null && one.quality !== null).map((one) => ({ name: one.router_id, cost_usd: one.cost_usd, quality: one.quality, ink: ink(one.router_id) })) });
    for (const [name, made] of Object.entries(charts)) {
      const { at, columns, seen } = cut(together(last.routers, name), range.get(), Date.now() / 1000 + ahead);
      made.set(at, columns, [], [], seen);
    }
  }

  async function suggest() {
    const source = new EventSource("api/routers?count=100");
    source.onmessage = (message) => {
      source.close();
      known.replaceChildren(...(JSON.parse(message.data).order ?? []).filter((id) => !ids.includes(id)).map((value) => el("option", { value })));
    };
    source.onerror = () => source.close();
  }

  function add(event) {
    event.preventDefault();
    location.hash = page("compare", ...new Set([...ids, name.value.trim()]));
  }

  function figures(routers) {
    const heads = ["Router", "Requests", "Spend", "$ per request", "÷ budget", "Quality", "Saved", "vs mix", "λ_t", "Alarms", ""].map((label, at) => ({ label, number: at > 0 && at < 10 }));
    return table("Each over its own requests; saved: against its best model alone", heads, routers.map((one) => [
      el("span", {}, el("a", { href: page("router", one.router_id), class: ink(one.router_id) }, one.router_id)), count(one.decided), usd(one.spend_usd), usd(one.cost_usd), fixed(one.ratio, 2), off(one.quality, one.quality_off), percent(one.saved),
      one.beyond_mix ? "> mix" : percent(one.saved_mix), dual(one.lambda_t), one.alarms ? el("a", { href: page("router", one.router_id, "alarms") }, count(one.alarms)) : "0",
      el("a", { href: page("compare", ...ids.filter((id) => id !== one.router_id)), "aria-label": `Leave ${one.router_id} out` }, "leave out")]));
  }
}

/** The bins of several routers as those of one, in the order of their ends. */
function together(routers, name) {
  const all = routers.flatMap(({ router_id, series }) => series.at.map((at, place) => ({ at, begins: series.begins[place], id: router_id, value: series[name][place], more: series.requests[place] - (series.requests[place - 1] ?? 0) })));
  all.sort((a, b) => a.at - b.at);
  let sum = 0;
  return { at: all.map((one) => one.at), begins: all.map((one) => one.begins), requests: all.map((one) => sum += one.more),
    columns: Object.fromEntries(routers.map(({ router_id }) => [router_id, all.map((one) => one.id === router_id ? one.value : null)])) };
}
