// Studies of a router's recorded history: started here, done by the server beside its other work.

import { api, ask, el, table } from "./dom.js";
import { count, fixed, percent, usd } from "./format.js";
import { pareto } from "./pareto.js";

const SPANS = [["everything on the topics", 0], ["the last week", 7 * 86400], ["the last day", 86400], ["the last hour", 3600]];

/** A choice of how much of the past is taken; `since()` is in seconds since the epoch, 0 for all. */
export function span(id) {
  const choice = el("select", { id }, ...SPANS.map(([label, seconds]) => el("option", { value: seconds }, label)));
  return { parts: [el("label", { for: id }, "Over"), choice], since: () => Number(choice.value) && Date.now() / 1000 - Number(choice.value) };
}

/** Run a study and show how far it is; `done` gets its result. Returns {box, start(asked)}. */
export function runner(id, done) {
  const bar = el("progress", { "aria-label": "Progress" }), told = el("span", { role: "status" });
  const cancel = el("button.quiet", { type: "button" }, "Cancel");
  const box = el("div.tools", { hidden: true }, bar, told, cancel), fault = el("p.fault", { role: "alert" });
  let running = null;

  async function start(asked) {
    fault.textContent = "";
    try {
      running = await ask(api(id, "studies"), { method: "POST", body: asked });
      told.textContent = "starting";
      box.hidden = false;
      await follow(running.number);
    } catch (error) {
      fault.textContent = error.message;
    }
    box.hidden = true;
  }

  async function follow(number) {
    cancel.onclick = () => ask(api(id, "studies", String(number)), { method: "DELETE" });
    while (box.isConnected) {
      const study = await ask(api(id, "studies", String(number)));
      if (study.status === "done") return done(study);
      if (study.status !== "running") throw new Error(study.error ? `It failed: ${study.error}.` : "Cancelled.");
      const { what, done: at, of } = study.progress;
      if (of) { bar.max = of; bar.value = Math.min(at, of); } else bar.removeAttribute("value");
      told.textContent = what ? `${what}: ${count(at)}${of ? ` of ${count(of)}` : ""}` : "starting";
      await new Promise((go) => setTimeout(go, 300));
    }
  }

  /** Go on with what runs already, or show what was found last. */
  async function resume(kind) {
    const { studies } = await ask(api(id, "studies")).catch(() => ({ studies: [] }));
    const last = studies.find((one) => one.kind === kind && ["running", "done"].includes(one.status));
    if (!last) return;
    box.hidden = last.status !== "running";
    await follow(last.number).catch((error) => { fault.textContent = error.message; });
    box.hidden = true;
  }
  return { box: el("div", {}, box, fault), start, resume };
}

function section(title, text, id, kind, show) {
  const result = el("div", { "aria-live": "polite" }), over = span(`${kind}-span`);
  const run = runner(id, (study) => result.replaceChildren(...show(study.result).filter(Boolean)));
  const press = el("button", { type: "button", onclick: async () => { press.disabled = true; await run.start({ kind, since: over.since() }); press.disabled = false; } }, "Work it out");
  setTimeout(() => run.resume(kind));
  return el("section", { "aria-label": title }, el("h2", {}, title), el("p.note", {}, text),
    el("div.tools", {}, ...over.parts, press), run.box, result);
}

/** Where the money goes, by kind of prompt. */
export const kindsOf = (id) => section("Where the money goes",
  "The last requests in groups of alike contexts; named by words that several prompts of a group share, where prompts were sent.", id, "kinds",
  ({ kinds, requests }) => [table(`${count(requests)} requests in ${kinds.length} kinds, the dearest first`,
    ["Kind", "Requests", "Dollars", "Per request", "Reward", "Models"].map((label, at) => ({ label, number: at > 0 && at < 5 })),
    kinds.map((one, at) => [one.words.length ? one.words.join(", ") : `kind ${at + 1}`, `${count(one.requests)} (${percent(one.share)})`,
      `${usd(one.spend_usd)} (${percent(one.spend_share)})`, usd(one.cost_usd), fixed(one.reward),
      Object.entries(one.shares).map(([model, share]) => `${model} ${percent(share)}`).join(", ")]))]);

/** What another budget would buy: reward over cost, and the fixed mixes of models for comparison. */
export const frontierOf = (id) => section("What would another budget buy?",
  "This router's own requests, decided again from the beginning under other budgets; where a model was not called, its outcome is what the history lets expect.", id, "frontier",
  ({ points, models, recorded, requests, budget_usd }) => [bought(points, models, recorded),
    points.some((one, at) => at && one.reward < points[at - 1].reward) ? el("p.note", {},
      "A larger budget earns less at some step: each budget is one replay that learns anew, with its own tries, so small differences between two are chance.") : null,
    table(`${count(requests)} requests; budget today ${usd(budget_usd)} a request`,
      ["Budget", "Cost per request", "Reward", "÷ budget", "Guessed"].map((label, at) => ({ label, number: at > 0 })),
      [...points.map((one) => [`${usd(one.budget_usd)} (× ${one.step})`, one]), ["as recorded", recorded], ...models.map((one) => [`always ${one.model}`, one])]
        .map(([label, one]) => [label, usd(one.cost_usd_per_request), fixed(one.reward), fixed(one.cost_over_budget, 2), percent(one.modelled)]))]);

/** What was found of a policy, as the picture takes it. */
export const placed = (one, more) => ({ cost_usd: one.cost_usd_per_request, quality: one.reward, ...more });

function bought(points, models, recorded) {
  const made = pareto();
  made.set({
    line: points.map((one) => placed(one, { name: `× ${one.step}` })), models: models.map((one) => placed(one, { name: one.model })),
    router: placed(recorded, { name: "as it was" }), mixes: [],
  });
  return made.box;
}
