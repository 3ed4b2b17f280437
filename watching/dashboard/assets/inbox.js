// What people are asked to label, the newest first: by keyboard, or by thumb on a telephone.

import { api, ask, el, page, say } from "./dom.js";
import { count, moment } from "./format.js";
import { follow } from "./live.js";

const STORED = "pbstream labels as"; // the name under which this browser labels

/** Show the inbox of all routers, or of one; returns what ends it. */
export function showInbox(view, only) {
  const card = el("section.card", { "aria-label": "What is to be labelled now", tabindex: -1 }), list = el("ol.waiting"), told = el("p.told", { role: "status" }), fault = el("p.fault", { role: "alert" });
  const how = el("p.note"), who = el("label.who", { hidden: true }, "You are ", el("input", { id: "who", maxlength: 64, autocomplete: "username", pattern: "[A-Za-z0-9._@\\-]{1,64}", placeholder: "your name" }));
  const name = who.querySelector("input"), left = el("h1");
  let found = null, at = 0, last = null, back = null, drawn = "", busy = false, sending = null;
  name.value = localStorage.getItem(STORED) ?? "";
  name.addEventListener("change", () => localStorage.setItem(STORED, name.value.trim()));
  view.append(left, who, card, fault, told, how, list);
  follow(`api/inbox${only ? `?router=${encodeURIComponent(only)}` : ""}`, ({ inbox }) => {
    if (!inbox) return;
    const kept = back ?? found?.wanted[at];
    found = inbox;
    // What is looked at stays, also where something newer comes.
    const same = kept ? inbox.wanted.findIndex((one) => is(one, kept)) : -1;
    if (same >= 0) back = null;
    at = same >= 0 ? same : Math.max(0, Math.min(at, inbox.wanted.length - 1));
    show();
  });
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);

  function show() {
    const { wanted, takes } = found, now = JSON.stringify([found, at]);
    if (now === drawn) return;
    drawn = now;
    say(left, wanted.length ? `${count(found.count)} to label` : "Inbox");
    who.hidden = found.name !== null || !takes;
    const one = wanted[at], focused = card.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    card.replaceChildren(...(one ? asked(one, takes) : empty()));
    if (focused) (card.querySelector(`[data-key="${focused}"]`) ?? card).focus({ preventScroll: true });
    how.hidden = !one;
    how.replaceChildren(...(takes ? KEYS(one?.rewards.length ?? 0) : ["Labels are not taken here: start the dashboard with ", el("code", {}, "--labels"), "."]));
    list.replaceChildren(...wanted.map((each, place) => el("li", {}, el("button.text", { type: "button", "aria-current": place === at ? "true" : null, onclick: () => go(place) },
      only ? each.request_id : `${each.router_id} · ${each.request_id}`), " ", el("small", {}, moment(each.at)))));
  }

  function asked(one, takes) {
    const give = (label, body, key, more = "") => el(`button${more}`, { type: "button", "data-key": key, "aria-keyshortcuts": key, disabled: !takes, onclick: () => send(body) }, label, el("kbd", { "aria-hidden": "true" }, key));
    return [
      el("p.answer", {}, one.link ? el("a", { href: one.link, target: "_blank", rel: "noopener noreferrer", "data-key": "o" }, one.request_id) : one.request_id),
      el("p.note", {}, el("a", { href: page("router", one.router_id) }, one.router_id), `, ${moment(one.at)}. `, one.link ? "The link opens the answer (o)." : "The router declares no label_url: look the answer up by this id."),
      el("div.steps-of", { role: "group", "aria-label": "How good is it? From 0 to 1" }, ...one.rewards.map((reward, step) => give(String(reward), { reward }, String((step + 1) % 10)))),
      el("div.actions", { role: "group", "aria-label": "In a word" }, give("Thumbs down", { reward: 0 }, "d"), give("Thumbs up", { reward: 1 }, "u"), give("Can't tell", { cant_tell: true }, "x"))];
  }

  function empty() {
    return found.asks ? [el("p.answer", {}, "Nothing is waiting for a label."), el("p.note", {}, "What is asked for next appears here by itself.")]
      : [el("p", {}, `${only ? `Router ${only} asks for no labels, or is none that you may see.` : "No router that you may see asks for labels."} Say how many people can give:`), el("pre", {}, '"labels": {"want": 50, "per": "day"},\n"label_url": "https://traces.example.com/{request_id}"'),
        el("p.note", {}, "in the router's declaration, with ", el("code", {}, "pbstream routers apply"), ".")];
  }

  function go(place) {
    if (!found?.wanted.length) return;
    at = Math.max(0, Math.min(place, found.wanted.length - 1));
    back = null;
    show();
    card.scrollIntoView({ block: "nearest" });
  }

  function send(body, one = found?.wanted[at]) {
    if (one && !busy) sending = deliver(body, one);
  }

  async function deliver(body, one) {
    busy = true;
    try {
      const { source } = await ask(api(one.router_id, "labels"), { method: "POST", body: { request_id: one.request_id, name: name.value.trim() || null, ...body } });
      const word = body.undo ? "taken back" : body.cant_tell ? "can't tell" : `labelled ${body.reward}`;
      last = body.undo ? null : one;
      say(fault, "");
      told.replaceChildren(`${one.request_id}: ${word}, by ${source}. `, ...(last ? [el("button.text", { type: "button", onclick: undo }, "Undo (z)")] : []));
      // The server has it: the next one, or the one that is open again, is shown before the stream says so.
      (body.undo ? reopen : drop)(one);
    } catch (error) {
      fault.textContent = error.message;
    }
    busy = false;
  }

  function drop(one) {
    back = null;
    keep(found.wanted.filter((each) => !is(each, one)));
    at = Math.max(0, Math.min(at, found.wanted.length - 1));
    show();
  }

  function reopen(one) {
    back = one; // the stream may still send a list without it
    keep([...found.wanted.filter((each) => !is(each, one)), one].sort((a, b) => b.at - a.at));
    at = found.wanted.indexOf(one);
    show();
  }

  function keep(wanted) {
    found = { ...found, wanted, count: found.count + wanted.length - found.wanted.length };
  }

  async function undo() {
    await sending; // the stream may show that a label was taken before its answer is here
    if (last) send({ undo: true }, last);
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    const { key } = event, one = found?.wanted[at];
    if (key === "j" || key === "ArrowDown") go(at + 1);
    else if (key === "k" || key === "ArrowUp") go(at - 1);
    else if (key === "z") undo();
    else if (one && key === "o" && one.link) card.querySelector("[data-key=o]").click();
    else if (one && found.takes && /^[0-9dux]$/.test(key)) card.querySelector(`button[data-key="${key}"]`)?.click();
    else return;
    event.preventDefault();
  }
}

/** Tell whether two entries are of the same request. */
const is = (one, other) => one.request_id === other.request_id && one.router_id === other.router_id;

/** Which keys do what. */
const KEYS = (steps) => ["Keys: ", el("kbd", {}, "1"), " to ", el("kbd", {}, String(steps % 10)), " from bad to good, ", el("kbd", {}, "d"), " thumbs down, ", el("kbd", {}, "u"), " thumbs up, ", el("kbd", {}, "x"), " can't tell, ",
  el("kbd", {}, "o"), " open the answer, ", el("kbd", {}, "j"), " and ", el("kbd", {}, "k"), " next and back, ", el("kbd", {}, "z"), " undo."];
