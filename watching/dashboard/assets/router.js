// One router: the answer and its picture, what it saved, its trends with what explains them, its models, its decisions.

import { api, el, page, table } from "./dom.js";
import { clock, count, drawn, dual, fixed, known, moment, off, percent, until, usd } from "./format.js";
import { chart } from "./chart.js";
import { happened } from "./figures.js";
import { leading } from "./lead.js";
import { follow } from "./live.js";
import { inkOf } from "./pareto.js";
import { budgets } from "./money.js";
import { checklist } from "./checklist.js";
import { decisionsOf } from "./decisions.js";
import { sourcesOf } from "./sources.js";
import { kindsOf, frontierOf } from "./studies.js";
import { changesOf } from "./admin.js";
import { PASSING, cut, ranges } from "./ranges.js";
import { TERMS } from "./terms.js";
import { verifiersOf } from "./verifiers.js";

const SHOWN_EVENTS = 5; // beside the charts; the others are behind a summary

/** Show the page; returns what ends it. */
export function showRouter(view, id, part) {
  const lead = leading(), now = el("p.note"), standings = el("div"), suspects = el("div", { "aria-live": "polite" }), news = el("div.news"), models = el("div");
  const series = new Series(), inks = new Map();
  let last = null, offset = 0, place = (time) => time; // seconds that the server's clock is ahead; and where charts show a time
  const charts = {
    reward: chart("Quality", { low: 0, high: 1, show: fixed }), ratio: chart("Spend ÷ budget", { line: 1, show: (value) => fixed(value, 2) }),
    shares: chart("Share of each model", { high: 1, show: percent, ink: (name) => inkOf(inks.get(name) ?? 0) }), lambda: chart("λ_t"),
  };
  const gone = el("div.empty", { hidden: true }, el("h2", {}, "No such router"),
    el("p", {}, "The topics that were read name no router of this id; it may be gone. ",
      el("a", { href: "#/" }, "All routers"), "."));
  const steps = checklist(id), money = budgets(), decisions = decisionsOf(id), verifiers = verifiersOf(), sources = sourcesOf(id);
  const range = ranges(() => show()), overTime = el("div", {}, el("h2", {}, "Trends"), range.box, el("div.charts", {}, ...Object.values(charts).map((one) => one.box)), news);
  const admin = changesOf(id);
  const shown = el("div", {}, steps.box, lead.box, now, money.box, standings, suspects, overTime,
    el("h2", {}, "Models"), models, sources.box, verifiers.box, admin.box,
    kindsOf(id), frontierOf(id),
    el("h2", {}, "What if"), el("p", {}, el("a", { href: page("what-if", id) }, "Replay this router's history under other conditions"), "."),
    el("h2", {}, "Proof"), el("p", {}, el("a", { href: page("proof", id) }, "What it saved against its incumbent, with intervals"), "."),
    decisions.box);
  view.append(el("h1", {}, id), gone, shown);

  follow(api(id), (found) => {
    if (found.router === undefined) return;
    const router = found.router;
    gone.hidden = router !== null;
    shown.hidden = router === null;
    if (!router) return;
    steps.take(router);
    overTime.hidden = lead.box.hidden = !router.decided && !router.picture.decisions;
    router.models.forEach((one, at) => inks.set(one.model, at));
    lead.set(router);
    money.take(router.state?.budgets ?? [], router.decided > 0);
    decisions.take(router.models);
    verifiers.take(router.verifiers);
    tellNow(router);
    tellStandings(router.standings, router.state?.family?.name);
    tellSuspects(router.models);
    tellModels(router);
    sources.take(router.labelling);
    admin.take(router);
    if (found.series) series.take(found.series);
    tellNews(router.news);
    if (part === "alarms" && !last) setTimeout(() => { news.tabIndex = -1; news.scrollIntoView({ block: "center" }); news.focus({ preventScroll: true }); });
    [last, offset] = [router, (found.now ?? Date.now() / 1000) - Date.now() / 1000];
    show();
  });

  /** Draw the range that was chosen. */
  function show() {
    if (!last) return;
    const own = cut(series, range.get(), Date.now() / 1000 + offset), shares = cut({ ...series, columns: series.shares }, range.get(), Date.now() / 1000 + offset);
    const marks = last.news.map((one, at) => ({ at: own.place(one.at), number: at + 1 }));
    for (const name of ["reward", "ratio", "lambda"])
      charts[name].set(own.at, { [NAMES[name]]: (own.columns[name] ?? []).map(name === "lambda" ? drawn : (value) => value) }, marks, [], own.seen);
    charts.shares.set(shares.at, shares.columns, marks, [], shares.seen);
    place = own.place;
  }

  function tellNow(router) {
    const { alarms, refused } = router, said = known(router.decided)  // a worker's account comes with the first commit
      ? [`${count(router.decided)} decided`, `${count(router.in_flight)} in flight`, `λ_t ${dual(router.lambda_t)}`] : [];
    said.push(`${fixed(router.rate, 1)} requests/s`, ...alarms ? [] : ["no alarm"]);
    if (refused) said.push(`${count(refused)} events refused`);
    const key = `${said.join()}${alarms}${router.lambda_t}`;
    if (now.dataset.told === key) return;
    now.dataset.told = key;
    now.replaceChildren(said.join(", "), ...alarms ? [", ", el("a", { href: page("router", id, "alarms"), onclick: toAlarms }, `${count(alarms)} alarm${alarms > 1 ? "s" : ""}`)] : [], `. ${until(router.lambda_t)}`);
  }

  /** How budgets of a period stand, what a floor of rewards takes, and what came from its family. */
  function tellStandings(told, family) {
    if (told.join() === (standings.dataset.told ?? "")) return;
    standings.dataset.told = told.join();
    standings.replaceChildren(...told.map((text) => el("p.note", {}, `${text}.`)), family ? el("p.note", {}, el("a", { href: page("families", family) }, `Family ${family}`), ": its members, and how alike they are.") : "");
  }

  function tellSuspects(all) {
    const told = [...all.filter((one) => one.down).map((one) => `Down since ${moment(one.down.since)}: ${one.down.text}.`),
      ...all.filter((one) => one.suspect).map((one) => `Suspected since ${moment(one.suspect.since)}: ${one.suspect.text}.`)];
    if (told.join() === suspects.dataset.told) return;
    suspects.dataset.told = told.join();
    suspects.replaceChildren(...told.map((text) => el("p.warn", {}, text)));
  }

  function toAlarms(event) {
    event.preventDefault();
    news.scrollIntoView({ block: "center" });
    news.querySelector("button")?.focus({ preventScroll: true });
  }

  /** Show when something happened in the charts, and the decisions up to then. */
  function goTo(one) {
    if (range.get() !== "requests") range.set("all");
    charts.reward.point(place(one.at));
    overTime.scrollIntoView({ block: "nearest" });
    decisions.show({ model: one.model, until: one.at });
  }

  function tellNews(all) {
    const key = JSON.stringify(all);
    if (news.dataset.told === key) return;
    news.dataset.told = key;
    const told = (one) => el("button.text", { type: "button", title: "Show it in the charts, with the decisions before it", onclick: () => goTo(one) }, one.text);
    const items = [...happened(all.map((one) => [clock(one.at), told(one)]))?.children ?? []].reverse(), older = items.slice(SHOWN_EVENTS);
    news.replaceChildren(el("ol.events", { reversed: true }, ...items.slice(0, SHOWN_EVENTS)),
      older.length ? el("details", { open: news.querySelector("details")?.open ?? false }, el("summary.note", {}, `${older.length} earlier events`), el("ol.events", { reversed: true }, ...older)) : "");
  }

  function tellModels(router) {
    const key = JSON.stringify(router.models);
    if (models.dataset.told === key) return;
    models.dataset.told = key;
    const failed = router.models.some((one) => one.down || (known(one.answered) && one.answered < 1));
    const heads = ["Model", "Price in/out", "Expected cost", "Mean bill", "Quality", "Expected", "Share", ...failed ? ["Answered"] : []]
      .map((label, at) => ({ label, number: at > 0, title: TERMS[label] }));
    const scrolled = models.firstChild?.scrollLeft ?? 0;
    models.replaceChildren(table("Prices in dollars per million tokens; quality as labelled, ± half of its 95% interval; expected: now, by the router, ± its own doubt of it (a standard deviation)", heads,
      router.models.map((one) => [el("span", {}, one.model, one.prices ? "" : " (left)"),
        one.prices ? `$${one.prices[0]} / $${one.prices[1]}` : null, usd(one.expected_cost_usd), usd(one.cost_usd),
        one.quality === null ? null : `${off(one.quality, one.doubt)} (${count(one.labels)})`,
        off(one.expected_quality, one.deviation), percent(one.share),
        ...failed ? [[known(one.answered) ? percent(one.answered) : "–", one.down ? "down" : "up"].join(", ")] : []])));
    models.firstChild.scrollLeft = scrolled;
  }

  const passing = setInterval(show, PASSING);
  return () => { clearInterval(passing); lead.end(); for (const one of Object.values(charts)) one.end(); };
}

const NAMES = { ratio: "spend ÷ budget", lambda: "λ_t", reward: "mean reward" };

/** The bins that the server sent, the last ones replaced by newer ones. */
export class Series {
  begins = [];
  at = [];
  requests = [];
  columns = {};
  shares = {};

  take(found) {
    const keep = found.from === found.first ? 0 : this.begins.findIndex((time) => time >= found.from);
    const kept = keep < 0 ? this.begins.length : keep;
    const joined = (old, fresh) => [...padded(old ?? [], kept), ...fresh];
    for (const name of Object.keys(NAMES)) this.columns[name] = joined(this.columns[name], found[name]);
    this.shares = Object.fromEntries(Object.entries(found.shares).map(([model, fresh]) => [model, joined(this.shares[model], fresh)]));
    for (const name of ["begins", "at", "requests"]) this[name] = joined(this[name], found[name]);
  }
}

const padded = (values, length) => [...values.slice(0, length), ...Array(Math.max(0, length - values.length)).fill(null)];
