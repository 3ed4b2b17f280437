// What a new router still needs, with what to type; ticked when it was seen.

import { el } from "./dom.js";

/** {box, take(router)}. It goes away once everything was seen. */
export function checklist(id) {
  const box = el("section.empty", { "aria-label": "First steps", hidden: true }), list = el("ol.steps");
  box.append(el("h2", {}, "First steps"), list);
  let told = "";
  return { box, take };

  function take(router) {
    const { bills, labels, decisions } = router.picture, declared = router.models.some((one) => one.prices);
    const decided = Boolean(router.decided || decisions), steps = [
      [declared || decided, "Declared", "which models it may choose, and their prices", `pbstream models add small --input-price 0.1 --output-price 0.4 --router ${id}`],
      [decided, "First request", "which model answers a prompt", `pbstream request "Why is the sky blue?" --router ${id}`],
      [bills > 0 || router.settled > 0, "First bill", "what a call cost", `pbstream cost ID --input-tokens 12 --output-tokens 310 --router ${id}`],
      [labels > 0 || router.rewarded > 0, "First label", "how good an answer was", `pbstream reward ID 0.9 --source judge --router ${id}`]];
    const now = steps.map(([seen]) => Number(seen)).join("");
    box.hidden = !now.includes("0");
    if (now === told) return;
    told = now;
    const next = steps.findIndex(([seen]) => !seen);
    list.replaceChildren(...steps.map(([seen, name, what, command], at) => el(seen ? "li.seen" : "li", {},
      el("span.tick-box", { role: "img", "aria-label": seen ? "seen" : "not yet" }, seen ? "✓" : ""), el("span", {}, el("strong", {}, name), `: ${what}`), at === next ? el("pre", {}, command) : null)));
  }
}
