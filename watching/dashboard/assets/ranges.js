// Which part of the time charts show, and where nothing happened in it.

import { el } from "./dom.js";

const RANGES = [["all", "all"], ["hour", "last hour", 3600], ["day", "last day", 86400], ["week", "last week", 7 * 86400], ["requests", "by requests"]];
// A gap is longer than this share of what is shown, and than so many usual steps. Where it is cut out it must be worth the room of its words.
const GAP_SHARE = 1 / 100, CUT_SHARE = 1 / 40, GAP_STEPS = 6;

export const PASSING = 15000; // milliseconds after which a range that ends now is drawn anew, though nothing was said

/** A choice of the range; {box, get(), set(name)}. `then` is called whenever another one is chosen. */
export function ranges(then) {
  let chosen = "all";
  const box = el("div.tools.ranges", { role: "group", "aria-label": "Range of the charts" },
    ...RANGES.map(([name, label]) => el("button", { type: "button", "data-range": name, "aria-pressed": name === "all" ? "true" : "false", onclick: () => set(name) }, label)));
  const set = (name) => {
    chosen = name;
    for (const one of box.children) one.setAttribute("aria-pressed", String(one.dataset.range === name));
    then();
  };
  return { box, set, get: () => chosen };
}

/**
 * The part of bins that a range shows. Bins are {begins, at, requests, columns: {name: values}}, all by place. Returns {at, columns, seen, place}: what a chart
 * takes, and `place(time)`, where an event of that time stands.
 */
export function cut(bins, range, now) {
  const long = RANGES.find(([name]) => name === range)?.[2];
  if (range === "requests") return byRequests(bins);
  const from = long ? now - long : -Infinity, start = bins.at.findIndex((at) => at >= from), keep = start < 0 ? bins.at.length : start;
  const places = bins.at.map((_, place) => place).slice(keep), at = bins.at.slice(keep), begins = bins.begins.slice(keep).map((one) => Math.max(one, from));
  const gaps = gapsOf(begins, at, long ? GAP_SHARE * long : CUT_SHARE * (at.at(-1) - begins[0]));
  return { at, columns: picked(bins.columns, places), place: (time) => time,
    seen: { gaps, begins, cut: !long, from: long ? from : begins[0], to: long ? now : at.at(-1), nothing: long ? "No request in this time." : undefined } };
}

/** Bins without a decision take no room; what their bills and labels say stands at the decision before. */
function byRequests(bins) {
  const begins = bins.requests.flatMap((count, at) => count > (bins.requests[at - 1] ?? 0) ? [at] : []), ends = begins.map((_, at) => (begins[at + 1] ?? bins.at.length) - 1);
  const place = (time) => { const at = bins.begins.findLastIndex((begin) => begin <= time); return at < 0 ? 0 : bins.requests[at]; };
  return { at: begins.map((at) => bins.requests[at]), columns: picked(bins.columns, ends), place, seen: { over: "request" } };
}

function gapsOf(begins, at, seconds) {
  const quiet = begins.map((begin, place) => place ? begin - at[place - 1] : 0), steps = begins.slice(1).map((begin, place) => begin - begins[place]).sort((a, b) => a - b);
  const least = Math.max(seconds, GAP_STEPS * (steps[steps.length >> 1] ?? 0));
  return quiet.flatMap((long, place) => long > least ? [place] : []);
}

const picked = (columns, places) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, places.map((at) => values[at])]));
