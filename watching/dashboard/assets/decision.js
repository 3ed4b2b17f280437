// One decision: why it was made in a sentence, one row for each model, and what came of it.

import { api, ask, el, page, table } from "./dom.js";
import { digits, dual, fixed, known, moment, off, percent, signed, until, usd } from "./format.js";
import { scaled, whisker } from "./whisker.js";

/** Show the page; returns what ends it. */
export function showDecision(view, id, request) {
  const leaving = new AbortController();
  const place = el("div", { "aria-live": "polite" }, el("p", {}, "Looking it up on the topics …"));
  view.append(el("h1", {}, `Decision ${request}`), place);
  load();
  return () => leaving.abort();

  async function load() {
    try {
      // A browser takes these for steps within a path.
      if (/^\.\.?$/.test(request)) throw new Error(`No address can hold this id. Look it up with: pbstream explain ${request} --router ${id}`);
      const found = await ask(api(id, "decisions", request), { signal: leaving.signal });
      place.replaceChildren(...shown(found), el("p", {}, el("button", { type: "button", onclick: load }, "Look again"), " ",
        el("a", { href: page("router", id) }, `Router ${id}`)));
    } catch (error) {
      if (!leaving.signal.aborted) place.replaceChildren(el("p.fault", {}, error.message));
    }
  }
}

function shown({ decision, because, candidates, costs, rewards, refusals, trace, trace_url }) {
  const parts = [];
  if (decision) {
    const chance = decision.propensity < 1 ? `It was chosen with probability ${digits(decision.propensity)}.` : "", more = [aside(because), chance].filter(Boolean).join(" ");
    parts.push(el("p.answer", {}, el("b", {}, decision.model), `: ${because.split(" (")[0]}.`), ...more ? [el("p", {}, more)] : [],
      candidates.length ? el("section", { "aria-label": "Candidates" }, compared(candidates), scores(candidates)) : el("p", {}, "This answer was given again; its terms are with the first one, which the topic holds no more."),
      ...(until(decision.lambda_t) ? [el("p.warn", {}, `λ_t: ${dual(decision.lambda_t)}. ${until(decision.lambda_t)}`)] : []),
      el("h2", {}, "What came of it"), outcomes(costs, rewards),
      el("h2", {}, "When it was made"), facts([
        ["Decided", moment(Date.parse(decision.decided_at) / 1000)], ["Decision of the router", decision.seq],
        ["λ_t as used", dual(decision.lambda_t, 4)], ["Expected reward", fixed(decision.expected_reward)],
        ["Expected cost", usd(decision.expected_cost_usd)], ["Declaration in force, offset", decision.config_offset],
        ["Trace", trace ? trace_url ? el("a", { href: trace_url, rel: "noreferrer" }, trace) : el("code", {}, trace) : "none: the request carried no traceparent"]]));
  }
  if (refusals.length) parts.push(table("Refused events of this request", [{ label: "Topic" }, { label: "Reason" }, { label: "Message" }],
    refusals.map((one) => [one.topic, one.reason, one.message])));
  return parts;
}

/** What the sentence says in brackets, as a sentence of its own. */
function aside(because) {
  const told = because.match(/ \((.*)\)$/s)?.[1];
  return told ? `${told[0].toUpperCase()}${told.slice(1)}.` : "";
}

const facts = (terms) => el("dl.tiles", {}, ...terms.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

/** One row a model: what it earns and costs, how sure that is, and why it was not chosen. */
function compared(candidates) {
  const ends = candidates.flatMap(({ mean, deviation }) => [mean - (deviation ?? 0), mean + (deviation ?? 0)]), low = Math.min(...ends), top = Math.max(...ends);
  const x = scaled(ends, 0.01), unsure = candidates.some(({ deviation }) => known(deviation));
  return table(`Expected when it was decided${unsure ? "; ±: a standard deviation; whiskers on one scale" : ""}`,
    [{ label: "Model" }, { label: "Earns", number: true }, { label: `From ${fixed(low)} to ${fixed(top)}` }, { label: "Costs", number: true }, { label: "8 of 10 bills", number: true }, { label: "Why not" }],
    candidates.map((one) => [one.lost === null ? el("strong", {}, `→ ${one.model}`) : one.model, off(one.mean, one.deviation), doubt(one, x), usd(one.expected_cost_usd),
      known(one.cost_low_usd) ? `${usd(one.cost_low_usd)} to ${usd(one.cost_high_usd)}` : null, one.lost === null ? el("strong", {}, "chosen") : one.lost]));
}

function doubt(one, x) {
  const [low, high] = known(one.deviation) ? [one.mean - one.deviation, one.mean + one.deviation] : [null, null];
  return whisker(`${one.model}: expected reward ${off(one.mean, one.deviation)}`, one.lost === null ? "c0" : "quiet", x, { low, middle: one.mean, high });
}

/** How the score of each came about. */
function scores(candidates) {
  const unsure = candidates.filter(({ deviation }) => known(deviation));
  return el("details.scores", {}, el("summary", {}, "How the scores came about"),
    table("Expected reward + exploration (what the uncertainty adds or takes) − penalty (λ_t × expected cost ÷ budget) = score", ["Model", "Expected reward", "Exploration", "Penalty", "Score", "Expected cost"].map((label, at) => ({ label, number: at > 0 })),
      candidates.map((one) => [one.model, fixed(one.mean, 4), signed(one.bonus, 4), fixed(-one.penalty, 4), fixed(one.score, 4), usd(one.expected_cost_usd)])),
    unsure.length ? table("How sure the router was of the expected reward (common to all models + the model's own; uncertainty: a standard deviation), and of the bill",
      ["Model", "Uncertainty", "Common to all models", "The model's own", "8 of 10 bills", "Chance of a bill of $0"].map((label, at) => ({ label, number: at > 0 })),
      unsure.map((one) => [one.model, `± ${fixed(one.deviation, 4)}`, fixed(one.shared, 4), signed(one.mean - one.shared, 4),
        `${usd(one.cost_low_usd)} to ${usd(one.cost_high_usd)}`, percent(one.unpaid, 1)])) : null);
}

function outcomes(costs, rewards) {
  const revision = (one) => one.revision ? `, revision ${one.revision}` : "";
  const bills = costs.map((one) => `Bill: ${one.cost_usd === undefined ? `${one.input_tokens} input and ${one.output_tokens} output tokens` : usd(one.cost_usd)}${revision(one)}`);
  const labels = rewards.filter((one) => one.source).map((one) => `Label: ${one.cant_tell ? "can't tell" : one.reward ?? "withdrawn"} by ${one.source}${revision(one)}`);
  return el("ul", {}, ...(bills.length ? bills : ["No bill yet"]).map((text) => el("li", {}, `${text}.`)),
    ...(labels.length ? labels : ["No label yet"]).map((text) => el("li", {}, `${text}.`)));
}
