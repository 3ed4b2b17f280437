// What a page leads with: the answer in a sentence, the Pareto picture, and what it saved.

import { answer, el, say, tiles } from "./dom.js";
import { count, moment } from "./format.js";
import { pareto } from "./pareto.js";

/** {box, set(router, id), end}: of a router as the server shows it, with its `picture`. */
export function leading() {
  const told = el("p.answer.lead-answer"), beside = el("p.note"), picture = pareto(), facts = tiles();
  const box = el("section", { "aria-label": "The answer" }, told, beside, el("div.lead", {}, picture.box, facts.box));
  const set = (router, id) => {
    const shown = router.picture, next = missing(shown, id);
    if (told.dataset.told !== shown.sentence) told.replaceChildren(...answer(told.dataset.told = shown.sentence));
    beside.replaceChildren(...(next ?? [`${shown.beside} Over ${count(shown.decisions)} requests since ${moment(shown.since)}.`]));
    picture.set(shown);
    facts.set(shown.facts);
  };
  return { box, set, end: picture.end };
}

/** What to do first, where the picture lacks bills or labels. */
function missing({ bills, labels }, id) {
  if (bills && labels) return null;
  const command = bills ? `pbstream reward ID 0.9 --source judge --router ${id}` : `pbstream cost ID --input-tokens 12 --output-tokens 310 --router ${id}`;
  return [bills ? "No label yet. Say how good an answer was: " : "No bill yet. Say what a call cost: ", el("code", {}, command)];
}
