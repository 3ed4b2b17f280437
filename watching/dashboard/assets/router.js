// One router: its numbers, its charts with what explains them, its models, its decisions.

import { api, ask, el, page, say, table } from "./dom.js";
import { clock, count, drawn, dual, fixed, moment, off, percent, until, usd } from "./format.js";
import { chart, palette } from "./chart.js";
import { follow } from "./live.js";
import { kindsOf, frontierOf } from "./studies.js";
import { changesOf } from "./admin.js";
import { TERMS } from "./terms.js";

/** Show the page; returns what ends it. */
export function showRouter(view, id) {
  const sums = el("dl.sums"), suspects = el("div", { "aria-live": "polite" }), news = el("ol.news"), models = el("div");
  const series = new Series(), colours = new Map();
  const colourOf = (name) => {
    if (!colours.has(name)) colours.set(name, palette(colours.size));
    return colours.get(name);
  };
  const charts = {
    ratio: chart("Spend ÷ budget", { line: 1 }), lambda: chart("λ_t"),
    reward: chart("Reward", { high: 1 }), shares: chart("Share of each model", { high: 1, show: (value) => percent(value), pick: colourOf }),
  };
  const gone = el("div.empty", { hidden: true }, el("h2", {}, "No such router"),
    el("p", {}, "The topics that were read name no router of this id; it may be gone. ",
      el("a", { href: "#/" }, "All routers"), "."));
  const none = el("div.empty", { hidden: true }, el("p", {}, "No request yet. Ask for a first decision:"), el("pre", {}, first(id)));
  const overTime = el("div", {}, el("h2", {}, "Over time"), el("div.charts", {}, ...Object.values(charts).map((one) => one.box)));
  const admin = changesOf(id);
  const shown = el("div", {}, sums, none, suspects,
    overTime, news,
    el("h2", {}, "Models"), models, admin.box,
    kindsOf(id), frontierOf(id),
    el("h2", {}, "What if"), el("p", {}, el("a", { href: page("what-if", id) }, "Replay this router's history under other conditions"), "."),
    decisionsOf(id));
  view.append(el("h1", {}, id), gone, shown);
  let numbers = [];

  follow(api(id), (found) => {
    if (found.router === undefined) return;
    gone.hidden = found.router !== null;
    shown.hidden = found.router === null;
    if (!found.router) return;
    none.hidden = found.router.decided !== 0;
    overTime.hidden = !none.hidden;
    tellSums(found.router);
    tellSuspects(found.router.models);
    tellModels(found.router);
    admin.take(found.router);
    if (found.series) series.take(found.series);
    numbers = found.router.news.map((one, at) => ({ ...one, number: at + 1 }));
    tellNews();
    const [times, columns] = [series.at, series.columns];
    for (const name of ["ratio", "lambda", "reward"])
      charts[name].set(times, { [NAMES[name]]: (columns[name] ?? []).map(name === "lambda" ? drawn : (value) => value) }, numbers);
    charts.shares.set(times, series.shares, numbers);
  });

  function tellSums(router) {
    const terms = [
      ["Spend ÷ budget", fixed(router.ratio), router.budget_usd === null ? "no budget: only counted" : `budget ${usd(router.budget_usd)} a request`],
      ["Spend", usd(router.spend_usd), `${usd(router.cost_usd)} a request`],
      ["Quality", fixed(router.quality), `${count(router.labels)} requests with a label`],
      ["Saved against the dearest", percent(router.saved), router.dearest_usd ? `${usd(router.dearest_usd)} a request` : ""],
      ["Saved against the best mix", router.beyond_mix ? "> mix" : percent(router.saved_mix),
        router.beyond_mix ? "no fixed mix is as good" : "of the same quality"],
      ["λ_t", dual(router.lambda_t), until(router.lambda_t)], ["In flight", count(router.in_flight), ""],
      ["Requests/s", fixed(router.rate, 1), `${count(router.decided)} decided`],
      ["Alarms", count(router.alarms), router.refused ? `${count(router.refused)} events refused` : ""]];
    if (!sums.children.length)
      sums.append(...terms.map(([name]) => el("div", { title: TERMS[name] ?? TERMS[SAME[name]] }, el("dt", {}, name), el("dd", {}, el("span"), el("small")))));
    terms.forEach(([, value, more], at) => {
      const [number, small] = sums.children[at].lastChild.children;
      say(number, value);
      say(small, more);
    });
  }

  function tellSuspects(all) {
    const told = all.filter((one) => one.suspect).map((one) => `Suspected since ${moment(one.suspect.since)}: ${one.suspect.text}.`);
    if (told.join() === suspects.dataset.told) return;
    suspects.dataset.told = told.join();
    suspects.replaceChildren(...told.map((text) => el("p.warn", {}, text)));
  }

  function tellNews() {
    const key = JSON.stringify(numbers);
    if (news.dataset.told === key) return;
    news.dataset.told = key;
    news.replaceChildren(...[...numbers].reverse().map((one) => el("li", {},
      el("span.mark", {}, String(one.number)), el("time", { datetime: new Date(1000 * one.at).toISOString() }, clock(one.at)),
      el("span", {}, one.text))));
  }

  function tellModels(router) {
    const key = JSON.stringify(router.models);
    if (models.dataset.told === key) return;
    models.dataset.told = key;
    const heads = ["Model", "Price in/out", "Expected cost", "Mean bill", "Quality", "Expected", "Share", "Suspicion"]
      .map((label, at) => ({ label, number: at > 0 && at < 7, title: TERMS[label] }));
    const scrolled = models.firstChild?.scrollLeft ?? 0;
    models.replaceChildren(table("Prices in dollars per million tokens; quality as labelled, ± half of its 95 % interval; expected: now, by the router, ± its own doubt of it (a standard deviation)", heads,
      router.models.map((one) => [el("span", {}, one.model, one.prices ? "" : " (left)"),
        one.prices ? `$${one.prices[0]} / $${one.prices[1]}` : null, usd(one.expected_cost_usd), usd(one.cost_usd),
        one.quality === null ? null : `${off(one.quality, one.doubt)} (${count(one.labels)})`,
        off(one.expected_quality, one.deviation), percent(one.share), one.suspect ? one.suspect.text : "none"])));
    models.firstChild.scrollLeft = scrolled;
  }

  return () => Object.values(charts).forEach((one) => one.end());
}

/** What to type where a router has decided nothing. */
const first = (id) => `pbstream request "Why is the sky blue?" --router ${id}`;

/** Longer names of the page for words of the table. */
const SAME = { "Spend ÷ budget": "÷ budget", "Saved against the dearest": "Saved", "Saved against the best mix": "vs mix", "Requests/s": "Req/s" };

const NAMES = { ratio: "spend ÷ budget", lambda: "λ_t", reward: "mean reward" };

/** The bins that the server sent, the last ones replaced by newer ones. */
class Series {
  at = [];
  columns = {};
  shares = {};

  take(found) {
    const keep = found.from === found.first ? 0 : this.at.findIndex((time) => time >= found.from);
    const kept = keep < 0 ? this.at.length : keep;
    const joined = (old, fresh) => [...padded(old ?? [], kept), ...fresh];
    for (const name of Object.keys(NAMES)) this.columns[name] = joined(this.columns[name], found[name]);
    this.shares = Object.fromEntries(Object.entries(found.shares).map(([model, fresh]) => [model, joined(this.shares[model], fresh)]));
    this.at = [...this.at.slice(0, kept), ...found.at];
  }
}

const padded = (values, length) => [...values.slice(0, length), ...Array(Math.max(0, length - values.length)).fill(null)];

function decisionsOf(id) {
  const input = el("input", { id: "request", required: true, autocomplete: "off", maxlength: 128 });
  const list = el("div", { "aria-live": "polite" });
  const load = el("button", { type: "button", onclick: last }, "Show the last decisions");
  return el("section", { "aria-labelledby": "decisions" }, el("h2", { id: "decisions" }, "Decisions"),
    el("form.tools", { onsubmit: (event) => { event.preventDefault(); location.hash = page("decision", id, input.value.trim()); } },
      el("label", { for: "request" }, "request_id"), input, el("button", { type: "submit" }, "Explain"), load), list);

  async function last() {
    load.disabled = true;
    try {
      const { decisions } = await ask(api(id, "decisions"));
      list.replaceChildren(decisions.length
        ? table("The newest first", ["Request", "Time", "Model", "Why", "Expected reward", "Expected cost"].map((label, at) => ({ label, number: at > 3 })),
          decisions.map((one) => [el("a", { href: page("decision", id, one.request_id) }, one.request_id), clock(one.at),
            one.model, one.reason, fixed(one.expected_reward), usd(one.expected_cost_usd)]))
        : el("p", {}, "The topic holds no decision of this router. A first one: ", el("code", {}, first(id)), "."));
    } catch (error) {
      list.replaceChildren(el("p.fault", {}, error.message));
    }
    load.disabled = false;
  }
}
