// Changes by an operator: budget, prices, models. What will change is said before it is written.

import { api, ask, el, table } from "./dom.js";
import { session } from "./access.js";

/** The form of a router's page; {box, take(router)}. It is there for operators only. */
export function changesOf(id) {
  const box = el("section", { "aria-label": "Change this router", hidden: !session.admin });
  if (!session.admin) return { box, take() {} };
  const budget = number("budget", "Budget, $ per request (empty: none)"), said = el("p", { role: "status" }), fault = el("p.fault", { role: "alert" });
  const models = el("div"), fresh = { name: field("new-model", "text", "New model"), prices: [number("new-in", "input"), number("new-out", "output")] };
  let before = null, awaited = -1;
  box.append(el("h2", {}, "Change this router"), el("form", { onsubmit: preview },
    el("div.tools", {}, ...budget), models,
    el("div.tools", {}, ...fresh.name, ...fresh.prices.flat(), el("small", {}, "dollars per million tokens")),
    el("div.actions", {}, el("button.first", { type: "submit" }, "Show what will change")), fault, said));
  return { box, take };

  function field(name, type, label, more = {}) {
    return [el("label", { for: `change-${name}` }, label), el("input.short", { id: `change-${name}`, type, autocomplete: "off", ...more })];
  }

  function number(name, label) {
    return field(name, "number", label, { step: "any", min: 0 });
  }

  /** Fill the form once, and again after a change; never while somebody types. */
  function take(router) {
    if (before || router.state?.config_offset < awaited || !router.models.some((one) => one.prices)) return;
    before = { budget: router.declared_budget_usd, models: new Map(router.models.filter((one) => one.prices).map((one) => [one.model, one.prices])) };
    budget[1].value = before.budget ?? "";
    models.replaceChildren(...[...before.models].map(([model, prices], at) => {
      const [input, output] = [number(`in-${at}`, "input"), number(`out-${at}`, "output")];
      const leaves = el("input", { type: "checkbox", id: `change-leaves-${at}` });
      [input[1].value, output[1].value] = prices;
      return Object.assign(el("fieldset.model", {}, el("legend", {}, model), ...input, ...output, leaves, el("label", { for: leaves.id }, "leaves")),
        { model, values: () => leaves.checked ? null : [Number(input[1].value), Number(output[1].value)] });
    }));
  }

  function changes() {
    const found = [], wanted = budget[1].value === "" ? null : Number(budget[1].value);
    if (wanted !== (before.budget ?? null)) found.push({ path: ["budget_usd_per_request"], value: wanted });
    for (const row of models.children) {
      const values = row.values(), old = before.models.get(row.model);
      if (values === null) found.push({ path: ["models", row.model], value: null });
      else ["input_price_per_m", "output_price_per_m"].forEach((name, at) => {
        if (values[at] !== old[at]) found.push({ path: ["models", row.model, name], value: values[at] });
      });
    }
    const name = fresh.name[1].value.trim();
    if (name) found.push({ path: ["models", name], value: { input_price_per_m: Number(fresh.prices[0][1].value), output_price_per_m: Number(fresh.prices[1][1].value) } });
    return found;
  }

  async function preview(event) {
    event.preventDefault();
    fault.textContent = said.textContent = "";
    const wanted = before ? changes() : [];
    if (!wanted.length) { said.textContent = "Nothing is different from what is in force."; return; }
    try {
      confirm(wanted, await ask(api(id, "preview"), { method: "POST", body: { changes: wanted } }));
    } catch (error) {
      fault.textContent = error.message;
    }
  }

  function confirm(wanted, found) {
    const write = el("button.first", { type: "button", disabled: found.faults.length > 0, onclick: put }, "Put in force");
    const wrong = el("p.fault", { role: "alert" }, found.faults.join("; "));
    const dialog = el("dialog.confirm", { "aria-labelledby": "confirm-title" }, el("h1", { id: "confirm-title" }, `Change router ${id}?`),
      table("What will change", [{ label: "What" }, { label: "Now" }, { label: "Then" }], found.changes.map((one) => [one.what, one.before, one.after])),
      el("p.note", {}, `It counts from the next decision on, for all clients. It is written on the condition that offset ${found.based_on} is still in force.`), wrong,
      el("div.actions", {}, write, el("button.quiet", { type: "button", onclick: () => dialog.close() }, "Leave it as it is")));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();

    async function put() {
      write.disabled = true;
      wrong.textContent = "";
      try {
        const { config_offset } = await ask(api(id, "declaration"), { method: "POST", body: { changes: wanted, based_on: found.based_on } });
        said.textContent = `In force, at offset ${config_offset}.`;
        fresh.name[1].value = "";
        [before, awaited] = [null, config_offset];
        dialog.close();
      } catch (error) {
        wrong.textContent = error.message;
        write.disabled = false;
      }
    }
  }
}
