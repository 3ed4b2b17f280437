// Which page is shown: the address says it, after the #.

import { el, page } from "./dom.js";
import { leave } from "./live.js";
import { showAccess } from "./access.js";
import { showRouters } from "./routers.js";

const view = document.getElementById("view");
const trail = document.getElementById("trail");
let end = null;

const PAGES = {
  router: async () => (await import("./router.js")).showRouter,
  decision: async () => (await import("./decision.js")).showDecision,
  compare: async () => (await import("./compare.js")).showCompared,
  pools: async () => (await import("./pools.js")).showPools,
  families: async () => (await import("./families.js")).showFamilies,
  inbox: async () => (await import("./inbox.js")).showInbox,
  proof: async () => (await import("./proof.js")).showProof,
  "what-if": async () => (await import("./whatif.js")).showWhatIf,
};
const LISTS = { pools: "Pools", families: "Families", inbox: "Inbox" }; // pages of all, or of one
const NAMES = { decision: "Decision", proof: "Proof", "what-if": "What if" };

async function show() {
  const [kind, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const open = PAGES[kind] ? await PAGES[kind]() : showRouters;
  end?.();
  leave();
  view.replaceChildren();
  follow(kind, parts);
  end = open(view, ...parts);
  window.scrollTo(0, 0);
}

function follow(kind, [id, what]) {
  const steps = [el("a", { href: "#/", "aria-current": PAGES[kind] ? null : "page" }, "Routers")];
  if (LISTS[kind]) steps.push(el("a", { href: page(kind), "aria-current": id ? null : "page" }, LISTS[kind]), ...id ? [el("span", { "aria-current": "page" }, id)] : []);
  else if (kind === "compare") steps.push(el("a", { href: "#/compare", "aria-current": "page" }, "Compared"));
  else if (PAGES[kind]) steps.push(el("a", {
    href: `#/router/${encodeURIComponent(id)}`, "aria-current": kind === "router" ? "page" : null }, id));
  if (NAMES[kind]) steps.push(el("span", { "aria-current": "page" },
    what ? `${NAMES[kind]} ${what}` : NAMES[kind]));
  trail.replaceChildren(...steps.flatMap((step, at) => at ? [el("span.sep", { "aria-hidden": "true" }, "›"), step] : [step]));
  document.title = steps.at(-1).textContent + " · pbstream";
}

window.addEventListener("hashchange", async () => { await show(); view.focus({ preventScroll: true }); });
window.addEventListener("pb:session", show);
if (await showAccess()) show();
