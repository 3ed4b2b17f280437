// What a page leads with: the answer in a sentence, the Pareto picture, and what it saved.

import { answer, el, say, tiles } from "./dom.js";
import { count, moment } from "./format.js";
import { pareto } from "./pareto.js";

/** {box, set(router), end}: of a router as the server shows it, with its `picture`. */
export function leading() {
  const told = el("p.answer.lead-answer"), beside = el("p.note"), picture = pareto(), facts = tiles();
  const box = el("section", { "aria-label": "The answer" }, told, beside, el("div.lead", {}, picture.box, facts.box));
  const set = (router) => {
    const shown = router.picture;
    if (told.dataset.told !== shown.sentence) told.replaceChildren(...answer(told.dataset.told = shown.sentence));
    say(beside, shown.decisions ? `${shown.beside} Over ${count(shown.decisions)} request${shown.decisions > 1 ? "s" : ""} since ${moment(shown.since)}.`.trim() : "");
    picture.set(shown);
    facts.set(shown.facts);
  };
  return { box, set, end: picture.end };
}
