// All families: who is in them, how alike they are for each model, and what a newcomer starts with.

import { el, page, table } from "./dom.js";
import { count, fixed, known, off, signed, usd } from "./format.js";
import { follow } from "./live.js";
import { scaled, whisker } from "./whisker.js";

/** Show the page of all families, or of one; returns what ends it. */
export function showFamilies(view, id) {
  const box = el("div");
  let told = "";
  view.append(el("h1", {}, id ? `Family ${id}` : "Families"), box);
  follow(`api/families${id ? `?only=${encodeURIComponent(id)}` : ""}`, ({ families }) => {
    const now = JSON.stringify(families);
    if (!families || now === told) return;
    told = now;
    const gone = el("p", {}, "The topics that were read name no family of this name that you may see. ", el("a", { href: page("families") }, "All families"), ".");
    box.replaceChildren(...families.length ? families.map((one) => family(one, !id)) : [id ? gone : none()]);
  });
  return () => {};
}

function family(one, beside) {
  return el("section", { "aria-label": one.family }, el("h2", {}, el("a", { href: page("families", one.family) }, one.family)), el("p.note", {}, `${one.lines.join("; ")}.`),
    one.models.length ? models(one) : "", members(one, beside));
}

const HEADS = ["Model", "Members", "A newcomer expects", "τ, 95%", "How alike", "From requests", "Expected bill", "From bills of"];

function models({ family: name, models: all }) {
  const ends = all.flatMap((one) => one.rewards?.between ?? []), x = scaled(ends.length ? ends : [0, 1], 0.01);
  return table(`What a newcomer to ${name} starts with, by model: expected reward ± τ, the deviation between members; between what τ lies with 95%; drawn on one scale as where 95% of them lie; and the mean bill; each with the number of requests that it counts for`,
    HEADS.map((label, at) => ({ label, number: at > 0 && label !== "How alike" })),
    all.map((one) => [one.model, count(one.members), one.rewards && off(one.rewards.expected, one.rewards.apart), one.rewards?.sure && one.rewards.sure.map((end) => fixed(end)).join(" to "), one.rewards && alike(one, x), one.rewards && fixed(one.rewards.requests, 1), one.bills && bill(one.bills), one.bills && fixed(one.bills.requests, 1)]));
}

function alike({ model, rewards: { expected, between } }, x) {
  if (!between) return null;
  const [low, high] = between;
  return whisker(`${model}: expected reward ${fixed(expected)}, 95% of members between ${fixed(low)} and ${fixed(high)}`, "c0", x, { low, middle: expected, high });
}

/** A bill at the members' list prices; where none of them is known, against the list price. */
function bill({ usd: dollars, expected, apart }) {
  if (!dollars) return known(expected) ? `${fixed(Math.exp(expected), 2)} × list price` : null;
  const [low, high] = dollars.map((one) => usd(one, 3));
  return `${low === high ? low : `${low} to ${high}`} (× or ÷ ${fixed(Math.exp(apart), 2)})`;
}

const MEMBER = ["Router", "Rewards told", "Level", "Weight", "Tells, learns", "From the others"];

function members({ family: name, members: all, more }, beside) {
  if (!all.length) return el("p.note", {}, more ? `${count(more)} members that you may not see.` : "No router is in it.");
  const why = all.some((one) => one.why), heads = why ? [...MEMBER, "No part, as"] : MEMBER;
  return el("div", {}, table(`Members of ${name}: by how much their rewards lie above the others', what their fit makes them count for, and the requests that the others' knowledge counts for still`,
    heads.map((label, at) => ({ label, number: at > 0 && at < 4 })),
    all.map((one) => [el("a", { href: page("router", one.router_id) }, one.router_id), count(one.rewards), signed(one.level), one.aside ? "left out" : fixed(one.weight, 2),
      `${one.gives ? "tells" : "does not tell"}, ${one.takes ? "learns" : "does not learn"}`, requests(one.counts), ...why ? [one.why] : []])),
    more ? el("p.note", {}, `And ${count(more)} more. `, beside ? el("a", { href: page("families", name) }, "Its own page") : "") : "");
}

const requests = (counts) => counts && (fixed(counts[0], 1) === fixed(counts[1], 1) ? `${fixed(counts[0], 1)} requests` : `${fixed(counts[0], 1)} to ${fixed(counts[1], 1)} requests, by model`);

const none = () => el("div.empty", {}, el("h2", {}, "No family yet"), el("p", {}, "Routers of a family learn from each other, and a new one starts from what the others know. A family begins with the first router that names it:"),
  el("pre", {}, "pbstream families join support --router chat\npbstream families join support --router mail"), el("p.note", {}, "or ", el("code", {}, '"family": "support"'), " in the declarations of the routers."));
