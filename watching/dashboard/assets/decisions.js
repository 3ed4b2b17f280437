// A router's last decisions, filtered by model, reason, cost and label.

import { api, ask, el, page, table } from "./dom.js";
import { count, fixed, moment, usd } from "./format.js";

/** {box, take(models), show({model, until})}. */
export function decisionsOf(id) {
  const input = el("input", { id: "request", required: true, autocomplete: "off", maxlength: 128 });
  const list = el("div", { "aria-live": "polite" }), until = el("p.note", { hidden: true });
  const model = el("select", { id: "of-model" }, el("option", { value: "" }, "any model")), reason = el("select", { id: "of-reason" }, el("option", { value: "" }, "any reason"));
  const number = (name, label, more = {}) => el("input.short", { id: `of-${name}`, type: "number", min: 0, step: "any", "aria-label": label, placeholder: name.endsWith("from") ? "from" : "to", ...more });
  const numbers = { cost_from: number("cost-from", "Cost from, $"), cost_to: number("cost-to", "Cost to, $"), label_from: number("label-from", "Label from", { max: 1 }), label_to: number("label-to", "Label to", { max: 1 }) };
  const load = el("button", { type: "submit" }, "Show the last decisions");
  let moved = null, models = "";
  const box = el("section", { "aria-labelledby": "decisions" }, el("h2", { id: "decisions" }, "Decisions"),
    el("form.tools", { onsubmit: (event) => { event.preventDefault(); location.hash = page("decision", id, input.value.trim()); } },
      el("label", { for: "request" }, "request_id"), input, el("button", { type: "submit" }, "Explain")),
    el("form.tools.filters", { onsubmit: (event) => { event.preventDefault(); last(); }, onchange: () => list.firstChild && last() },
      el("label", { for: "of-model" }, "Model"), model, el("label", { for: "of-reason" }, "Reason"), reason,
      el("span.pair", {}, el("span", {}, "Cost, $"), numbers.cost_from, numbers.cost_to), el("span.pair", {}, el("span", {}, "Label"), numbers.label_from, numbers.label_to), load), until, list);
  return { box, take, show };

  function take(found) {
    const names = found.map((one) => one.model), now = names.join("\n");
    if (now === models) return;
    models = now;
    const before = model.value;
    model.replaceChildren(el("option", { value: "" }, "any model"), ...names.map((name) => el("option", { value: name }, name)));
    model.value = names.includes(before) ? before : "";
  }

  /** The decisions up to a moment, those for a model where one is named. */
  function show({ model: name, until: time }) {
    model.value = name && [...model.options].some((one) => one.value === name) ? name : "";
    reason.value = "";
    for (const one of Object.values(numbers)) one.value = "";
    moved = time;
    until.hidden = false;
    until.replaceChildren(`Up to ${moment(time)}. `, el("button.text", { type: "button", onclick: () => { moved = null; until.hidden = true; last(); } }, "Show the newest"));
    last();
  }

  async function last() {
    load.disabled = true;
    const query = new URLSearchParams();
    for (const [name, field] of Object.entries({ model, reason, ...numbers })) if (field.value !== "") query.set(name, field.value);
    if (moved !== null) query.set("until", moved);
    try {
      const { decisions, read, reasons } = await ask(`${api(id, "decisions")}?${query}`), chosen = reason.value;
      reason.replaceChildren(el("option", { value: "" }, "any reason"), ...Object.entries(reasons).map(([value, label]) => el("option", { value }, label)));
      reason.value = chosen;
      list.replaceChildren(decisions.length
        ? table("The newest first; a label or a bill counts once the dashboard has seen it", ["Request", "Time", "Model", "Why", "Expected reward", "Label", "Expected cost", "Bill"].map((label, at) => ({ label, number: at > 3 })),
          decisions.map((one) => [el("a", { href: page("decision", id, one.request_id) }, one.request_id), moment(one.at),
            one.model, one.reason, fixed(one.expected_reward), fixed(one.label), usd(one.expected_cost_usd), usd(one.cost_usd)]))
        : el("p", {}, read ? `None of the last ${count(read)} decisions is such a one.` : ["The topic holds no decision of this router. A first one: ", el("code", {}, `pbstream request "Why is the sky blue?" --router ${id}`), "."]));
    } catch (error) {
      list.replaceChildren(el("p.fault", {}, error.message));
    }
    load.disabled = false;
  }
}
