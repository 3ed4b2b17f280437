// What a page follows, as the server sends it: one stream at a time, and whether it is there.

import { say } from "./dom.js";
import { moment } from "./format.js";

let open = null;
let silent = null;

/** Follow a path; what was followed before is left. `take` gets each document. */
export function follow(path, take) {
  leave();
  const source = open = new EventSource(path);
  source.onmessage = (event) => {
    if (source !== open) return;
    heard();
    const found = JSON.parse(event.data);
    if (found.state) tell(found.state);
    take(found);
  };
  source.onerror = () => {
    if (source !== open) return;
    lost();
    if (source.readyState === EventSource.CLOSED) {
      source.close();
      setTimeout(() => source === open && refollow(source, path, take), 2000);
    }
  };
}

/** Stop following. */
export function leave() {
  if (open) open.close();
  open = null;
  say(document.getElementById("status"), "");
}

/** A stream that the server refused: ask it why, and try again where it only was away or busy. */
async function refollow(source, path, take) {
  const asking = new AbortController();
  const answer = await fetch(path, { signal: asking.signal }).catch(() => null), status = answer?.status;
  const why = status >= 400 ? await answer.json().catch(() => ({})) : {};
  asking.abort();
  if (source !== open) return;
  if (status === 401) window.dispatchEvent(new CustomEvent("pb:key"));
  else if (status >= 400 && status < 500 && status !== 429) {
    leave();
    heard();
    say(document.getElementById("trouble"), [why.title, why.detail].filter(Boolean).join(" "));
  } else follow(path, take);
}

function heard() {
  clearTimeout(silent);
  silent = null;
  document.body.classList.remove("away");
}

function lost() {
  silent ??= setTimeout(() => {
    document.body.classList.add("away");
    say(document.getElementById("status"), "not connected");
    say(document.getElementById("trouble"),
      "The dashboard's server does not answer. What you see is what it said last; the page tries again by itself.");
  }, 1500);
}

function tell(state) {
  const status = document.getElementById("status");
  const trouble = document.getElementById("trouble");
  document.body.classList.toggle("stale", Boolean(state.trouble));
  if (state.trouble) {
    say(status, "not live");
    say(trouble, `${capital(state.trouble)}, since ${moment(state.since)}. `
      + "What you see is what the topics said before; the page goes on by itself once Kafka answers.");
  } else {
    say(status, state.complete ? "live" : "reading the past");
    say(trouble, "");
  }
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
