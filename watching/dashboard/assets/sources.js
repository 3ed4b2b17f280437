// Whose labels a router has: how far its judges are from people, and how many labels were asked for.

import { el, page, table } from "./dom.js";
import { count, fixed, signed } from "./format.js";

/** {box, take(labelling)}; the box is hidden where the router declares neither sources nor labels. */
export function sourcesOf(id) {
  const box = el("section.sources", { "aria-labelledby": "sources", hidden: true });
  let told = "";
  return { box, take };

  function take(labelling) {
    const now = JSON.stringify(labelling);
    if (now === told) return;
    told = now;
    const { asks, lines, judges } = labelling;
    box.hidden = !lines.length && !judges.length;
    box.replaceChildren(el("h2", { id: "sources" }, "Labels"), ...lines.map((line) => el("p", {}, `${line}.`)),
      asks ? el("p", {}, el("a", { href: page("inbox", id) }, "What is to be labelled"), ".") : "",
      ...judges.filter((one) => one.models?.length).map(judge));
  }
}

function judge(one) {
  return table(`${one.source} beside people's labels: the judge's label less theirs, with its 95% interval at every look`,
    ["Model", "Pairs", "Offset", "Favour", "Lately"].map((label, at) => ({ label, number: at > 0 })),
    one.models.map((model) => [model.model, count(model.pairs), between(model.offset), between(model.favour), between(model.lately)]));
}

const between = (one) => one ? `${signed(one.value, 2)} (${fixed(one.low, 2)} to ${fixed(one.high, 2)})` : null;
