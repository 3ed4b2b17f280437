// What a router saved against its incumbent: a sentence, intervals of all, of weeks and of kinds, and the file for an auditor.

import { answer, el, page, table } from "./dom.js";
import { count, signed, usd } from "./format.js";
import { runner } from "./studies.js";
import { scaled, whisker } from "./whisker.js";

/** Show the page; returns what ends it. */
export function showProof(view, id) {
  const result = el("div", { "aria-live": "polite" });
  const run = runner(id, ({ result: proof }) => result.replaceChildren(...shown(id, proof)));
  const press = el("button", { type: "button", onclick: async () => { press.disabled = true; await run.start({ kind: "proof" }); press.disabled = false; } }, "Work it out");
  view.append(el("h1", {}, `Proof: ${id}`),
    el("p.note", {}, "The requests that the router answered beside those that were left to its incumbent, at random. You may look as often as you like: all looks together miss the truth once in twenty."),
    el("div.tools", {}, press), run.box, result, el("p", {}, el("a", { href: page("router", id) }, `Router ${id}`)));
  setTimeout(() => run.resume("proof"));
  return () => {};
}

function shown(id, proof) {
  const { figures } = proof;
  return [el("p.answer", {}, ...answer(proof.says)), intervals("All requests, each week from its Monday (UTC), and each kind that requests name", [["all", figures.whole], ...Object.entries(figures.weeks), ...Object.entries(figures.kinds)]),
    ...estimates(figures), el("p.note", {}, `${count(figures.not_compared)} requests compare nothing: all or none like them were routed. Each row has an interval of its own; of twenty rows one may be wrong.`), download(id, proof)];
}

const MONEY = { of: (one) => one.saved_usd_per_request, show: (value) => usd(value, 3) }, QUALITY = { of: (one) => one.reward_gain, show: signed };

function intervals(caption, rows) {
  const scales = new Map([MONEY, QUALITY].map((what) => [what, scaled([0, ...rows.flatMap(([, one]) => Object.values(what.of(one)).filter(Number.isFinite))])]));
  const told = (what, one) => [between(what.of(one), what.show), drawn(what.of(one), what.show, scales.get(what))];
  const heads = ["", "Routed", "Saved a request", "", "Saved in all", "Reward", ""].map((label, at) => ({ label, number: [1, 2, 4, 5].includes(at) }));
  return table(caption, heads, rows.map(([name, one]) => [name, count(one.routed), ...told(MONEY, one), between(one.saved_usd, (value) => usd(value, 3)), ...told(QUALITY, one)]));
}

/** The estimate from the logged propensities, beside the comparison by the draw: the two have to agree. */
function estimates({ whole, against = {} }) {
  return Object.entries(against).map(([name, one]) => el("p", {}, one.not_supported ? `Estimated against ${name}: not supported, ${one.not_supported}.`
    : `Estimated from the logged propensities, against ${name}: saved a request ${between(one.saved_usd_per_request, MONEY.show)}, reward ${between(one.reward_gain, QUALITY.show)}. ${agree(whole, one) ? "This agrees with what the draw shows." : "This does not agree with what the draw shows: the history breaks an assumption of one of them."}`));
}

const agree = (whole, one) => [MONEY, QUALITY].every(({ of }) => !(of(whole).low > of(one).high || of(one).low > of(whole).high));

function between({ value, low, high }, show) {
  if (value === null) return "–";
  return low === null ? `${show(value)} (too early)` : `${show(value)} (${show(low)} to ${show(high)})`;
}

const drawn = ({ low, value, high }, show, x) => value === null ? "" :
  whisker(between({ low, value, high }, show), "c0", x, { low, middle: value, high, level: 0 });

function download(id, proof) {
  const link = el("a", { download: `${id}-proof.json`, href: URL.createObjectURL(new Blob([JSON.stringify(proof, null, 1)], { type: "application/json" })) }, "The file for an auditor");
  return el("p", {}, link, `: it names the records that were read. To repeat it: pbstream proof --router ${id} --verify ${id}-proof.json`);
}
