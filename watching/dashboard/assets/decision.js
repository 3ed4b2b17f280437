// One decision: the terms of every candidate as bars that add up to its score, and what came of it.

import { api, ask, draw, el, page, table } from "./dom.js";
import { digits, dual, fixed, known, moment, off, percent, signed, until, usd } from "./format.js";

/** Show the page; returns what ends it. */
export function showDecision(view, id, request) {
  const leaving = new AbortController();
  const place = el("div", { "aria-live": "polite" }, el("p", {}, "Looking it up on the topics …"));
  view.append(el("h1", {}, `Decision ${request}`), place);
  load();
  return () => leaving.abort();

  async function load() {
    try {
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
    const chance = decision.propensity < 1 ? `; chosen with probability ${digits(decision.propensity)}` : "";
    parts.push(el("p", {}, "→ ", el("strong", {}, decision.model), `: ${because}${chance}.`),
      candidates.length ? bars(candidates) : el("p", {}, "This answer was given again; its terms are with the first one, which the topic holds no more."),
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

const facts = (terms) => el("dl.tiles", {}, ...terms.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

function bars(candidates) {
  const unsure = candidates.filter(({ deviation }) => known(deviation));
  const reached = candidates.flatMap((one) => [one.mean, one.mean + (one.deviation ?? 0), one.mean - (one.deviation ?? 0), one.mean + one.bonus, one.score]);
  const top = Math.max(...reached, 0.01), low = Math.max(Math.min(0, ...reached), -top);
  const x = (value) => 100 * (Math.max(value, low) - low) / (top - low); // what is far below is cut, and says so
  const swatch = (kind, text) => el("span", {}, draw("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, draw("rect", { class: kind, width: 1, height: 1 })), text);
  return el("section", { "aria-label": "Candidates" },
    el("p.inks", {}, swatch("mean", "expected reward"), swatch("bonus", "exploration: what the uncertainty adds (or takes)"), swatch("penalty", "− penalty for its cost: λ_t × expected cost ÷ budget"), el("span", {}, "┃ score"),
      unsure.length ? el("span", {}, "├┤ uncertainty: by so much the expected reward may be off") : null),
    el("div.bars", {}, ...candidates.map((one) => el("div", {},
      el("div.name", {}, el("span", {}, one.lost === null ? el("strong", {}, `→ ${one.model}`) : one.model), el("span.number", {}, `score ${fixed(one.score, 4)}`)),
      bar(one, x),
      el("small", {}, one.lost === null ? "chosen" : one.lost, one.score < low ? " (its bar is cut)" : "")))),
    table("The same in numbers: expected reward + exploration − penalty = score", ["Model", "Expected reward", "Exploration", "Penalty", "Score", "Expected cost"].map((label, at) => ({ label, number: at > 0 })),
      candidates.map((one) => [one.model, fixed(one.mean, 4), signed(one.bonus, 4), fixed(-one.penalty, 4), fixed(one.score, 4), usd(one.expected_cost_usd)])),
    unsure.length ? doubts(unsure) : null);
}

/** What the router did not know when it decided: of the reward, and of the bill. */
const doubts = (candidates) => table("How sure the router was of the expected reward (common to all models + the model's own; uncertainty: a standard deviation), and of the bill",
  ["Model", "Uncertainty", "Common to all models", "The model's own", "8 of 10 bills", "Chance of a bill of $0"].map((label, at) => ({ label, number: at > 0 })),
  candidates.map((one) => [one.model, `± ${fixed(one.deviation, 4)}`, fixed(one.shared, 4), signed(one.mean - one.shared, 4),
    `${usd(one.cost_low_usd)} to ${usd(one.cost_high_usd)}`, percent(one.unpaid, 1)]));

/** The expected reward from 0, exploration behind it, and the penalty back to the score: three thin lanes of one bar. */
function bar(one, x) {
  const lane = (kind, from, to, y) => draw("rect", { class: kind, x: Math.min(x(from), x(to)), width: Math.max(0.3, Math.abs(x(to) - x(from))), y, height: 6 });
  const spoken = `${one.model}: expected reward ${off(one.mean, one.deviation, 4)}, exploration ${signed(one.bonus, 4)}, penalty ${fixed(one.penalty, 4)}, score ${fixed(one.score, 4)}`;
  return draw("svg", { class: "bar", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": spoken },
    lane("mean", 0, one.mean, 0.5), lane("bonus", one.mean, one.mean + one.bonus, 7), lane("penalty", one.mean + one.bonus, one.score, 13.5),
    known(one.deviation) ? whisker(x(one.mean - one.deviation), x(one.mean + one.deviation)) : null,
    draw("line", { class: "score", x1: x(one.score), x2: x(one.score), y1: 0, y2: 20, "vector-effect": "non-scaling-stroke" }));
}

const whisker = (from, to) => draw("path", { class: "off", d: `M${from} 1v5M${from} 3.5H${to}M${to} 1v5`, "vector-effect": "non-scaling-stroke" });

function outcomes(costs, rewards) {
  const revision = (one) => one.revision ? `, revision ${one.revision}` : "";
  const bills = costs.map((one) => `Bill: ${one.cost_usd === undefined ? `${one.input_tokens} input and ${one.output_tokens} output tokens` : usd(one.cost_usd)}${revision(one)}`);
  const labels = rewards.map((one) => `Label: ${one.reward} by ${one.source}${revision(one)}`);
  return el("ul", {}, ...(bills.length ? bills : ["No bill yet"]).map((text) => el("li", {}, `${text}.`)),
    ...(labels.length ? labels : ["No label yet"]).map((text) => el("li", {}, `${text}.`)));
}
