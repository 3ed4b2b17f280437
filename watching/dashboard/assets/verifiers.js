// A router's verifiers: what their verdicts mean, by labels, and what the plans that rest on them came to.

import { el, table } from "./dom.js";
import { count, known, percent, signed, usd } from "./format.js";

const HEADS = ["Model", "Passes right", "Stops wrong", "Labels", "Verdicts"].map((label, at) => ({ label, number: at > 0 }));

/** {box, take(verifiers)}: of a router as the server shows it. */
export function verifiersOf() {
  const box = el("section", { "aria-label": "Verifiers", hidden: true });
  let told = "";
  const take = (found) => {
    box.hidden = !found.length;
    const now = JSON.stringify(found);
    if (now === told) return;
    told = now;
    box.replaceChildren(el("h2", {}, "Verifiers"), ...found.flatMap(shown));
  };
  return { box, take };
}

function shown({ verifier, standing, ...plans }) {
  const fee = !standing ? "no longer declared" : standing.exact ? "its verdicts are the truth" : standing.usd > 0 ? `${usd(standing.usd)} a verdict` : "its verdicts are free";
  return [el("h3", {}, verifier), el("p.note", {}, `${[fee, ...worth(plans)].join("; ")}.`),
    standing ? table(`${verifier}: share of right answers that it passes, and of wrong answers that it stops, at verdicts from ${percent(standing.accept_at)} on, each with its 95% interval`, HEADS,
      standing.models.map((one) => [one.model, share(one.passes_right), share(one.stops_wrong), count(one.labels), count(one.verdicts)])) : "", fromFamily(standing)];
}

/** What of the table came from the router's family, beside its own labels. */
function fromFamily(standing) {
  const told = (standing?.models ?? []).filter((one) => one.family_labels);
  return told.length ? el("p.note", {}, `What its family told counts beside for ${told.map((one) => `${count(one.family_labels)} labels of ${one.model}`).join(", ")}.`) : "";
}

/** What its plans came to: how many there are, how often they go on, and what they are expected to bring against one call each. */
function worth({ planned, share: of, known: judged, went_on: went, gain, saved_usd: saved }) {
  if (!planned) return ["no plan rests on it yet"];
  return [`${count(planned)} plan${planned > 1 ? "s" : ""}, ${percent(of)} of the requests`,
    judged ? `${percent(went / judged)} of them went on to another model` : "no verdict on them has come yet",
    `against one call each, they are expected to earn ${signed(gain / planned)} a request and to ${saved < 0 ? "cost" : "save"} ${usd(Math.abs(saved), 3)} in all`];
}

const share = (one) => known(one) ? `${percent(one.value)} (${percent(one.low)} to ${percent(one.high)})` : null;
