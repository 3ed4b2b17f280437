// The key: for reading where the server asks for one, and for whoever may change routers.

import { ask, el } from "./dom.js";

const button = document.getElementById("access");
export const session = { admin: false, needs_key: false, takes_changes: false, name: null };

/** Find out who looks; tell whether the page may be shown. */
export async function showAccess() {
  Object.assign(session, await ask("api/session").catch((error) => ({ needs_key: false, fault: error.message })));
  button.hidden = !session.takes_changes && !session.admin;
  button.textContent = session.admin ? `Operator ${session.name}: sign out` : "Operator: sign in";
  button.onclick = session.admin ? leave : openDialog;
  if (session.needs_key) openDialog();
  return !session.needs_key;
}

window.addEventListener("pb:key", showAccess);

async function leave() {
  await ask("api/session", { method: "DELETE" });
  await showAccess();
  window.dispatchEvent(new CustomEvent("pb:session"));
}

function openDialog() {
  if (document.querySelector("dialog.key")) return;
  const input = el("input", { type: "password", id: "key", autocomplete: "current-password", required: true });
  const fault = el("p.fault", { role: "alert" });
  const dialog = el("dialog.key", { "aria-labelledby": "key-title" },
    el("form", { onsubmit: enter },
      el("h1", { id: "key-title" }, session.needs_key ? "This dashboard needs a key" : "Operator"),
      el("p", {}, "Keys are made by ", el("code", {}, "pbstream gateway --new-key NAME"),
        "; the server keeps their hashes. The session ends after 12 hours, or when you sign out."),
      el("label", { for: "key" }, "API key"), input, fault,
      el("div.actions", {},
        el("button", { type: "submit" }, "Enter"),
        session.needs_key ? null : el("button.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();

  async function enter(event) {
    event.preventDefault();
    try {
      await ask("api/session", { method: "POST", body: { key: input.value.trim() } });
      dialog.close();
      if (await showAccess()) window.dispatchEvent(new CustomEvent("pb:session"));
    } catch (error) {
      fault.textContent = error.message;
    }
  }
}
