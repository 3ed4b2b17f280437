// The charts of a study or a report, as Python chose them, with the events that explain them.

import { chart } from "./chart.js";
import { el } from "./dom.js";
import { count, fixed, percent, usd } from "./format.js";

const SHOWN = { fixed, percent, usd };

/**
 * The charts {title, at, series: {name: [value or null, …]}, line, high, show, models, alarms: [{at, of}], more}, those with `more` behind a summary of that
 * text, and the marks {at, text} by number. `names` are the series in the order of their inks; others have inks within their chart. Returns {parts, end}.
 */
export function figures({ charts, marks, names, over }, { open = false } = {}) {
  const sync = crypto.getRandomValues(new Uint32Array(1)).join(), numbers = marks.map(({ at }, number) => ({ at, number: number + 1 })), ends = [];
  const drawn = (one) => {
    const ink = (name, at) => names.includes(name) ? `c${names.indexOf(name) % 8}` : `c${(one.models ? 1 + at % 7 : at % 8)}`;
    const made = chart(one.title, { over, sync, ink, line: one.line, low: one.low, high: one.high, show: SHOWN[one.show] });
    made.set(one.at, one.series, numbers, one.alarms);
    ends.push(made.end);
    return made.box;
  };
  const grid = (some) => el("div.charts", {}, ...some.map(drawn)), more = [...new Set(charts.map((one) => one.more).filter(Boolean))];
  return {
    parts: [
      grid(charts.filter((one) => !one.more)),
      ...more.map((title) => el("details", { open }, el("summary", {}, title), grid(charts.filter((one) => one.more === title)))),
      happened(marks.map((one) => [`${over} ${count(Math.round(one.at))}`, one.text])),
    ].filter(Boolean),
    end: () => { for (const one of ends) one(); },
  };
}

/** What the numbers in the charts stand for: [when, text] in their order. */
export const happened = (told) => told.length ? el("ol.events", {}, ...told.map(([when, text], at) =>
  el("li", {}, el("span.mark", {}, String(at + 1)), el("span.when", {}, when), el("span", {}, text)))) : null;
