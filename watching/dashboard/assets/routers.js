// All routers: a table of which only the rows in sight exist, whatever its length.

import { answer, el, page, say } from "./dom.js";
import { count, dual, fixed, percent, usd } from "./format.js";
import { leading } from "./lead.js";
import { follow } from "./live.js";
import { TERMS } from "./terms.js";

const AROUND = 30; // rows that are followed above and below those in sight
const COMPARED = 4; // routers that a comparison begins with
const SETTLED = 120; // milliseconds without scrolling before other rows are asked for

const COLUMNS = [
  { key: "router_id", label: "Router", text: (row) => row.router_id },
  { key: "ratio", label: "÷ budget", text: (row) => fixed(row.ratio), tone: (row) => row.ratio > 1.05 ? "bad" : "" },
  { key: "spend_usd", label: "Spend", text: (row) => usd(row.spend_usd) },
  { key: "quality", label: "Quality", text: (row) => fixed(row.quality) },
  { key: "saved", label: "Saved", text: (row) => percent(row.saved) },
  { key: "saved_mix", label: "vs mix", text: (row) => row.beyond_mix ? "> mix" : percent(row.saved_mix) },
  { key: "lambda_t", label: "λ_t", text: (row) => dual(row.lambda_t) },
  { key: "in_flight", label: "In flight", text: (row) => count(row.in_flight) },
  { key: "rate", label: "Req/s", text: (row) => fixed(row.rate, 1) },
  { key: "alarms", label: "Alarms", text: (row) => row.suspects?.length ? `${row.alarms} ⚠` : count(row.alarms),
    tone: (row) => row.suspects?.length ? "bad" : "" },
];
const asked = { sort: "spend_usd", descending: true, search: "" };

/** Show the page; returns what ends it. */
export function showRouters(view) {
  const rows = new Map(); // by id, as the server said last
  const shown = new Map(); // elements, by place
  const free = []; // elements of places that went out of sight, to be used again
  let server = null, order = [], begin = 0, total = 0, sized = 0, followed = null, timer = null, drawing = false, first = true;

  const heads = COLUMNS.map((column) => head(column));
  const body = el("div.rows", { role: "rowgroup" });
  const list = el("div.table", { role: "table", "aria-label": "All routers", "aria-colcount": COLUMNS.length },
    el("div.heads", { role: "rowgroup" }, el("div.row.head", { role: "row" }, ...heads.map((one) => one.cell))), body);
  const told = el("p.answer"), now = el("p.note"), lead = leading(), whose = el("h2"), ahead = el("div.ahead", { hidden: true }, whose, lead.box);
  const empty = el("div.empty", { hidden: true });
  const search = el("input", { type: "search", id: "search", placeholder: "router or model", value: asked.search,
    autocomplete: "off", spellcheck: "false", oninput: () => { asked.search = search.value.trim(); restart(); } });
  const order_by = el("select", { id: "sort", onchange: () => sort(order_by.value) },
    ...COLUMNS.map((column) => el("option", { value: column.key }, column.label)));
  const beside = el("a", { href: page("compare") }, "Compare routers"); // the first ones of the table
  const tools = el("div.tools", {}, el("label", { for: "search" }, "Search"), search,
    el("span.narrow", {}, el("label", { for: "sort" }, "Sort"), order_by), beside);
  view.append(el("h1", {}, "All routers"), told, ahead, now,
    tools, list, empty);
  let tall = 40; // pixels of a row: read once, as asking for it between writes would lay the page out each time
  const measure = () => { tall = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 40; };

  function head(column) {
    const press = el("button", { type: "button", title: TERMS[column.label], onclick: () => sort(column.key) }, column.label);
    return { key: column.key, cell: el(column.key === "router_id" ? "div" : "div.number", { role: "columnheader" }, press) };
  }

  function sort(key) {
    asked.descending = key === asked.sort ? !asked.descending : key !== "router_id";
    asked.sort = key;
    restart();
  }

  function restart() {
    first = true;
    followed = null;
    clearTimeout(timer);
    timer = setTimeout(() => look(true), SETTLED);
    mark();
  }

  function mark() {
    for (const one of heads) {
      const sorted = one.key === asked.sort;
      one.cell.setAttribute("aria-sort", !sorted ? "none" : asked.descending ? "descending" : "ascending");
    }
    order_by.value = asked.sort;
  }

  function inSight() {
    const top = Math.max(0, -body.getBoundingClientRect().top);
    const from = Math.floor(top / tall);
    return [from, Math.min(total, from + Math.ceil(window.innerHeight / tall) + 1)];
  }

  /** Follow the rows in sight, where they are not followed already. */
  function look(again = false) {
    const [from, to] = again ? [0, 40] : inSight();
    if (!again && followed && from >= followed[0] && (to <= followed[1] || followed[1] >= total)) return;
    const start = Math.max(0, from - AROUND);
    followed = [start, start + Math.min(200, to - start + AROUND)];
    const query = new URLSearchParams({ ...asked, begin: start, count: followed[1] - start });
    follow(`api/routers?${query}`, take);
  }

  function take(found) {
    if (found.order) {
      order = found.order;
      begin = found.begin;
      total = found.count;
    }
    for (const row of found.rows ?? []) rows.set(row.router_id, row);
    if (rows.size > 2000) for (const id of rows.keys()) if (!order.includes(id)) rows.delete(id);
    if (found.total) tellTotal(found.total);
    if (found.lead) tellLead(found.lead);
    if (found.state) server = found.state;
    if (found.order) first = false;
    if (found.order && begin === 0) beside.href = page("compare", ...order.slice(0, COMPARED));
    beside.hidden = total < 2;
    if (found.state || found.order) tellEmpty(server);
    plan();
  }

  function plan() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; render(); });
  }

  // What is read of the layout comes first, then what is written. A row out of sight is moved to where one is
  // missing, and shows nothing until the server has said what stands there: a fling moves boxes, and no text.
  function render() {
    const [from, to] = inSight(), focused = document.activeElement;
    if (sized !== total * tall) {
      sized = total * tall;
      list.setAttribute("aria-rowcount", total + 1);
      body.style.height = `${sized}px`;
    }
    for (const [at, made] of shown) {
      if ((at < from - 5 || at >= to + 5 || at >= total) && !made.row.contains(focused)) {
        free.push(made);
        shown.delete(at);
      }
    }
    for (let at = Math.max(0, from - 5); at < Math.min(total, to + 5); at++) fill(at);
    for (const made of free) made.row.hidden = true;
  }

  function fill(at) {
    const made = shown.get(at) ?? put(at, free.pop() ?? make());
    const row = rows.get(order[at - begin]);
    if (made.drawn === row) return;
    if (!row !== !made.drawn) made.row.toggleAttribute("data-wait", !row);
    made.drawn = row;
    if (!row) return;
    COLUMNS.forEach((column, place) => {
      const cell = made.cells[place];
      if (place === 0) {
        say(cell, row.router_id);
        cell.href = page("router", row.router_id);
        return;
      }
      say(cell.lastChild, column.text(row));
      if (column.key === "alarms") made.alarms.href = page("router", row.router_id, "alarms");
      if (column.tone) cell.dataset.tone = column.tone(row);
    });
    made.row.title = row.suspects?.length ? `Suspected: ${row.suspects.join(", ")}` : "";
  }

  function make() {
    const link = el("a");
    const alarms = el("a");
    const cells = [link, ...COLUMNS.slice(1).map((column) => el("div.number", { role: "cell" },
      el("span.narrow.of", { "aria-hidden": "true" }, column.label), column.key === "alarms" ? alarms : el("span")))];
    const row = el("div.row", { role: "row", "data-wait": true }, el("div", { role: "cell" }, link), ...cells.slice(1));
    return { row, cells, alarms, drawn: undefined };
  }

  function put(at, made) {
    made.row.setAttribute("aria-rowindex", at + 2);
    made.row.style.transform = `translateY(${at * tall}px)`;
    made.row.hidden = false;
    if (!made.row.isConnected) body.append(made.row);
    shown.set(at, made);
    return made;
  }

  /** Bring the rows into the order in which they are read aloud and reached by Tab; the focused one stays. */
  function arrange() {
    const sorted = [...shown].sort(([a], [b]) => a - b).map(([, made]) => made.row);
    const there = [...body.children].filter((row) => !row.hidden);
    if (sorted.every((row, at) => row === there[at])) return;
    const fixed = sorted.findIndex((row) => row.contains(document.activeElement));
    sorted.forEach((row, at) => { if (at !== fixed) body.insertBefore(row, at < fixed ? sorted[fixed] : null); });
  }

  function tellTotal(sum) {
    const saved = sum.saved_usd / sum.alone_usd, less = sum.alone_usd > 0 ? `: ${percent(Math.abs(saved))} ${saved < 0 ? "more" : "less"} than their best models alone` : "";
    // Of a single router its own sentence is the answer.
    told.hidden = sum.routers < 2;
    ahead.classList.toggle("among", !told.hidden);
    const sentence = `${count(sum.routers)} routers spent ${usd(sum.spend_usd, 3)}${less}.`;
    if (told.textContent !== sentence) told.replaceChildren(...answer(sentence));
    say(now, sum.routers ? `${fixed(sum.rate, 1)} requests/s, ${count(sum.in_flight)} in flight, ${sum.suspected ? `${count(sum.suspected)} with a suspected model` : `no model suspected now${sum.alarms ? `, ${count(sum.alarms)} alarms so far` : ""}`}.` : "");
  }

  function tellLead(found) {
    ahead.hidden = !found.picture.decisions;
    whose.replaceChildren(told.hidden ? "" : "The one that spends most: ", el("a", { href: page("router", found.router_id) }, found.router_id));
    lead.set(found);
  }

  function tellEmpty(state) {
    const none = total === 0 && !first;
    empty.hidden = !none;
    list.hidden = total === 0;
    tools.hidden = none && !asked.search;
    if (!none) return;
    if (asked.search) empty.replaceChildren(el("p", {}, "No router, and no model of any, has this in its name."));
    else if (state?.trouble || state?.complete === false) empty.replaceChildren(el("p", {}, "Nothing has been read yet."));
    else if (state) empty.replaceChildren(el("h2", {}, "No router yet"),
      el("p", {}, `The topics of ${state.prefix} on ${state.bootstrap} name no router. Declare the first one:`),
      el("pre", {}, "pbstream models add small --input-price 0.1 --output-price 0.4\n"
        + "pbstream models add large --input-price 1.25 --output-price 10\npbstream budget set 0.001\n"
        + "pbstream request \"Why is the sky blue?\""),
      el("p", {}, "It appears here by itself, once a worker (", el("code", {}, "pbstream worker"), ") has taken it up."));
  }

  function keys(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = [...shown].find(([, made]) => made.row.contains(document.activeElement))?.[0];
    if (!step || at === undefined || at + step < 0 || at + step >= total) return;
    event.preventDefault();
    fill(at + step);
    arrange();
    shown.get(at + step).row.querySelector("a").focus({ preventScroll: true });
    shown.get(at + step).row.scrollIntoView({ block: "nearest" });
  }

  function scrolled() {
    plan();
    clearTimeout(timer);
    timer = setTimeout(() => { arrange(); look(); }, SETTLED);
  }

  const resized = () => {
    measure();
    for (const [at, made] of shown) put(at, made);
    scrolled();
  };
  list.addEventListener("keydown", keys);
  window.addEventListener("scroll", scrolled, { passive: true });
  window.addEventListener("resize", resized, { passive: true });
  measure();
  mark();
  look(true);
  return () => {
    clearTimeout(timer);
    lead.end();
    window.removeEventListener("scroll", scrolled);
    window.removeEventListener("resize", resized);
  };
}
