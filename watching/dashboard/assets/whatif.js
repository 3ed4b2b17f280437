// What if: the router's recorded history under other conditions, by several policies, compared.

import { api, ask, draw, el, page, table } from "./dom.js";
import { count, dual, fixed, moment, percent, usd } from "./format.js";
import { figures } from "./figures.js";
import { pareto } from "./pareto.js";
import { placed, runner, span } from "./studies.js";

const KINDS = {
  price: { label: "A price changes", model: true, value: ["× price", "factor", 2] },
  quality: { label: "A model's quality changes", model: true, value: ["quality becomes", "to", 0.5] },
  outage: { label: "A model fails", model: true },
  remove: { label: "A model leaves", model: true },
  add: { label: "A model joins then", model: true },
  budget: { label: "The budget changes", value: ["$ per request", "usd_per_request", 0.001] },
  latency: { label: "Another target of times", value: ["p95, ms", "p95_ms", 3000] },
  slower: { label: "A model becomes slower", model: true, value: ["× seconds", "factor", 2] },
  traffic: { label: "Traffic changes", value: ["× requests", "factor", 2] },
  delay: { label: "Bills and labels come later", value: ["requests later", "by", 100] },
  lose: { label: "Bills and labels are lost", value: ["share lost", "share", 0.2] },
  duplicate: { label: "Bills and labels come twice", value: ["share twice", "share", 0.2] },
};

const WAS = "recorded"; // the policy that is history itself

/** Show the page; returns what ends it. */
export function showWhatIf(view, id) {
  const events = el("div"), results = el("div"), together = pareto(), inks = el("p.inks"), behind = el("p.note", {}, "Grey: each model alone and their best fixed mixes, as the requests so far let expect. An arrow leads from how it was to what a policy would have done."), policies = el("fieldset", {}, el("legend", {}, "Who decides"));
  const name = el("input", { id: "name", maxlength: 80, placeholder: "a name for the comparison" }), over = span("what-if-span");
  const run = runner(id, show);
  const start = el("button", { type: "submit" }, "Replay");
  const models = [], ends = [], found = new Map(); // of charts; and by result the whole of each policy
  let numbered = 0, alone = {}; // each model and their fixed mixes, as the router's page has them
  const form = el("form", { onsubmit: go }, policies, events,
    el("div.tools", {}, el("button.quiet", { type: "button", onclick: () => events.append(event()) }, "Add an event"),
      el("label", { for: "name" }, "Name"), name, ...over.parts, start));
  view.append(el("h1", {}, `What if: ${id}`),
    el("p.note", {}, "The recorded requests are decided again, as pbstream replay does: nothing is written, and the workers are not asked. Of models that were not called, the outcome is what the history lets expect."),
    form, run.box, el("h2", {}, "Results"), together.box, inks, behind, results, el("p", {}, el("a", { href: page("router", id) }, `Router ${id}`)));
  const source = new EventSource(api(id));
  source.onmessage = (message) => {
    const { router } = JSON.parse(message.data);
    if (router === undefined) return;
    source.close();
    alone = { models: router?.picture.models ?? [], mixes: router?.picture.mixes ?? [] };
    compare();
    models.push(...(router?.models ?? []).map((one) => one.model));
    policies.append(...[["declared", "as declared"], ["recorded", "as it was"], ["paper", "profile paper"], ["live", "profile live"], ...models.map((model) => [model, `always ${model}`])]
      .slice(0, 12).map(([value, label], at) => el("label", {}, el("input", { type: "checkbox", value, checked: at < 2 }), ` ${label}`)));
    if (!events.children.length) events.append(event());
  };
  known();
  return () => { source.close(); for (const end of [together.end, ...ends]) end(); };

  function event() {
    const at = ++numbered;
    const box = el("fieldset.event", {}, el("legend", {}, "What happens"));
    const kind = el("select", { "aria-label": "Event", onchange: fill }, ...Object.entries(KINDS).map(([value, one]) => el("option", { value }, one.label)));
    const rest = el("span.tools");
    box.append(kind, rest, el("button.quiet", { type: "button", "aria-label": `Remove event ${at}`, onclick: () => box.remove() }, "Remove"));
    box.read = read;
    fill();
    return box;

    function fill() {
      const { model, value } = KINDS[kind.value];
      const fields = [model ? el("select", { "aria-label": "Model", name: "model" }, ...models.map((one) => el("option", {}, one))) : null,
        value ? el("label", {}, `${value[0]} `, el("input.short", { name: "value", type: "number", step: "any", required: true, value: value[2] })) : null,
        el("label", {}, "from % ", el("input.short", { name: "at", type: "number", min: 0, max: 100, value: kind.value === "add" ? 50 : 33 })),
        ["add", "remove", "budget"].includes(kind.value) ? null : el("label", {}, "until % ", el("input.short", { name: "until", type: "number", min: 0, max: 100, value: 67 }))];
      rest.replaceChildren(...fields.filter(Boolean));
    }

    function read() {
      const field = (wanted) => rest.querySelector(`[name=${wanted}]`)?.value;
      const { model, value } = KINDS[kind.value], made = { kind: kind.value, at: `${Number(field("at") || 0)}%` };
      if (field("until")) made.until = `${Number(field("until"))}%`;
      if (model) made.model = field("model");
      if (value) made[value[1]] = Number(field("value"));
      return made;
    }
  }

  async function go(submitted) {
    submitted.preventDefault();
    start.disabled = true;
    const happening = [...events.children].map((box) => box.read());
    const label = name.value.trim() || happening.map((one) => [KINDS[one.kind].label, one.model].filter(Boolean).join(": ")).join("; ") || "as recorded";
    const scenario = { name: label.slice(0, 120), policies: [...policies.querySelectorAll("input:checked")].map((box) => box.value), events: happening };
    await run.start({ kind: "what_if", since: over.since(), scenario });
    start.disabled = false;
  }

  async function known() {
    const { studies } = await ask(api(id, "studies")).catch(() => ({ studies: [] }));
    for (const one of studies.reverse()) if (one.kind === "what_if" && one.status === "done") show(await ask(api(id, "studies", String(one.number))));
  }

  function show({ number, name: label, began, result }) {
    if (found.has(number)) return;
    const shares = (one) => Object.entries(one.shares).map(([model, share]) => `${model} ${percent(share)}`).join(", ");
    const rows = Object.entries(result.policies).flatMap(([policy, { phases, total }]) =>
      [...phases, ...(phases.length > 1 ? [{ label: "all of it", ...total }] : [])].map((one) => [policy, one.label, count(one.requests), fixed(one.reward),
        usd(one.cost_usd_per_request), fixed(one.cost_over_budget, 2), `${dual(one.lambda_t)}${one.without_price > 0 && one.without_price < 1 ? `; none for ${percent(one.without_price)}` : ""}`, percent(one.modelled), shares(one)]));
    const said = Array.isArray(result.answer) ? result.answer : [result.answer];
    const drawn = figures(result);
    ends.push(drawn.end);
    results.prepend(el("section.result", { "aria-label": label }, el("h3", {}, label), ...said.map((text) => el("p", {}, String(text))),
      ...drawn.parts,
      table(`${count(result.requests)} requests, replayed ${moment(began)}`,
        ["Policy", "From", "Requests", "Reward", "$ per request", "÷ budget", "λ_t", "Guessed", "Shares"].map((title, at) => ({ label: title, number: at > 1 && at < 8 })), rows)));
    found.set(number, { label, policies: result.policies });
    compare();
  }

  /**
   * Everything that was found so far in one picture: a colour for each policy of each result, and an arrow to it from how it was. Behind it are the models
   * alone and their fixed mixes, as history tells.
   */
  function compare() {
    const last = [...found.values()].slice(-4), dots = [], arrows = [], named = [];
    for (const { label, policies } of last) {
      const was = policies[WAS] && placed(policies[WAS].total, { name: "as it was", ink: "was" });
      if (was && !dots.some((one) => one.cost_usd === was.cost_usd && one.quality === was.quality)) dots.push(was);
      for (const [policy, { total }] of Object.entries(policies)) {
        if (policy === WAS) continue;
        const dot = placed(total, { name: policy === "declared" ? "as declared" : policy, ink: `c${named.length % 8}` });
        named.push([dot.ink, `${dot.name}: ${label}`]);
        dots.push(dot);
        if (was) arrows.push([was, dot]);
      }
    }
    together.box.hidden = behind.hidden = !dots.length;
    together.set({ ...alone, quiet: true, dots, arrows });
    inks.replaceChildren(...named.map(([ink, label]) => el("span", {}, draw("svg", { "aria-hidden": "true" }, draw("rect", { width: 12, height: 12, class: ink })), label)));
  }
}
