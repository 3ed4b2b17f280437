// What a page leads with: the answer in a sentence, the Pareto picture, and what it saved.

import { answer, el, say, tiles } from "./dom.js";
import { count, fixed, moment, off, percent, usd } from "./format.js";
import { pareto } from "./pareto.js";

/** {box, set(router, id), end}: of a router as the server shows it, with its `picture`. */
export function leading() {
  const told = el("p.answer"), beside = el("p.note"), picture = pareto(), facts = tiles();
  const box = el("section", { "aria-label": "The answer" }, told, beside, el("div.lead", {}, picture.box, facts.box));
  const set = (router, id) => {
    const shown = router.picture, next = missing(shown, id);
    if (told.dataset.told !== shown.sentence) told.replaceChildren(...answer(told.dataset.told = shown.sentence));
    beside.replaceChildren(...(next ?? [`${shown.beside} Over ${count(shown.decisions)} requests since ${moment(shown.since)}.`]));
    picture.set(shown);
    facts.set(saved(router, shown));
  };
  return { box, set, end: picture.end };
}

/** What to do first, where the picture lacks bills or labels. */
function missing({ bills, labels }, id) {
  if (bills && labels) return null;
  const command = bills ? `pbstream reward ID 0.9 --source judge --router ${id}` : `pbstream cost ID --input-tokens 12 --output-tokens 310 --router ${id}`;
  return [bills ? "No label yet. Say how good an answer was: " : "No bill yet. Say what a call cost: ", el("code", {}, command)];
}

function saved({ ratio, budget_usd, cost_usd, spend_usd }, { best, best_usd, router, saved_mix, lead, labels, bills }) {
  const share = router && best_usd > 0 ? 1 - router.cost_usd / best_usd : null;
  return [
    [best ? `Saved against ${best} alone` : "Saved", share === null ? "–" : usd(bills * (best_usd - router.cost_usd), 3), share === null ? "needs bills and labels" : `${percent(share)} of ${usd(bills * best_usd, 3)}`],
    ["Saved against the best mix as good", router && saved_mix === null && lead ? "no mix is" : percent(saved_mix), lead ? `quality at the same cost: ${lead[0] < 0 ? "−" : "+"}${off(Math.abs(lead[0]), lead[1])}` : ""],
    ["Spend ÷ budget", fixed(ratio, 2), budget_usd === null ? `${usd(spend_usd, 3)}; no budget: only counted` : `${usd(cost_usd, 3)} of ${usd(budget_usd, 3)} a request`],
    ["Quality", fixed(router?.quality), router ? `± ${fixed(router.off)}; ${count(labels)} labels` : "needs bills and labels"],
  ];
}
