// Ticks, words and their room: what the charts and the Pareto picture share.

export const LEFT = 46, LINE = 16; // pixels: room for numbers beside an axis, and a line of text

/** About so many round numbers between two. */
export function ticks(low, high, many) {
  const rough = (high - low) / many, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((one) => one * power >= rough);
  if (!(step > 0) || !Number.isFinite(step)) return [low];
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

const DAY = 86400, STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY];

/** Moments between two, in seconds since 1970, round on the reader's clock, as many as their words have room for in so many pixels: {at, text}. */
export function moments(low, high, room) {
  const zone = 60 * new Date(1000 * high).getTimezoneOffset();
  for (const step of [...STEPS, 30 * DAY, 90 * DAY, 365 * DAY, 3650 * DAY]) {
    const style = step >= DAY ? { day: "numeric", month: "short", ...(step > 300 * DAY ? { year: "numeric" } : {}) } : { hour: "2-digit", minute: "2-digit", hour12: false, ...(step < 60 ? { second: "2-digit" } : {}) };
    const said = (at) => new Date(1000 * at).toLocaleString("en-GB", style), each = room * step / (high - low);
    if (each < 64 || each < wide(said(low)) + 18) continue;
    const first = Math.ceil((low - zone) / step), count = Math.floor((high - zone) / step) - first + 1;
    return Array.from({ length: Math.max(0, Math.min(20, count)) }, (_, number) => (first + number) * step + zone).map((at) => ({ at, text: said(at) }));
  }
  return [];
}

let ruler = null;

/** Pixels of a text at the size of an axis, in the page's font. */
export function wide(text, bold = false) {
  if (!ruler) {
    const { fontFamily, fontSize } = getComputedStyle(document.documentElement); // once: each time would lay the page out
    ruler = { pen: document.createElement("canvas").getContext("2d"), font: `${0.8 * parseFloat(fontSize)}px ${fontFamily}` };
  }
  ruler.pen.font = `${bold ? "600 " : ""}${ruler.font}`;
  return ruler.pen.measureText(text).width;
}

/** A bold text cut to so many pixels. */
export function fitted(text, room) {
  if (wide(text, true) <= room) return text;
  let long = text.length;
  while (long > 1 && wide(`${text.slice(0, long)}…`, true) > room) long -= 1;
  return `${text.slice(0, long)}…`;
}

/** Heights moved apart until each has its room, in their order. */
export function spread(heights, room, low, high) {
  const order = heights.map((_, at) => at).sort((a, b) => heights[a] - heights[b]), placed = [...heights];
  order.forEach((at, number) => { placed[at] = Math.max(placed[at], number ? placed[order[number - 1]] + room : low); });
  order.reverse().forEach((at, number) => { placed[at] = Math.min(placed[at], number ? placed[order[number - 1]] - room : high); });
  return placed;
}

/** Tell the width of an element, and again whenever it has another one; returns what ends that. */
export function resized(element, then) {
  let before = 0;
  const seen = new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width && Math.round(width) !== before) then(before = Math.round(width));
  });
  seen.observe(element);
  return () => seen.disconnect();
}
