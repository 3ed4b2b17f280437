// Elements are made of names and text: nothing that a topic says is ever read as markup.

/** Make an element: el("td.number", {title: "…"}, child, "text", …). Falsy children are left out. */
export function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  return put(made, attributes, ...children);
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a drawing. */
export function draw(tag, attributes = {}, ...children) {
  return put(document.createElementNS(SVG, tag), attributes, ...children);
}

function put(made, attributes, ...children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Show a text in an element; the page is touched only where it differs. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * A table with a caption: heads are {label, number, title}, rows are lists of nodes or texts. On a narrow screen a row is a card, with the heads beside its
 * values; roles say what it is still, as a browser takes a table that is laid out otherwise for none.
 */
export function table(caption, heads, rows) {
  const cells = (row) => row.map((cell, at) => el(heads[at].number ? "td.number" : at ? "td" : "th",
    at ? { role: "cell", "data-of": heads[at].label } : { role: "rowheader", scope: "row" }, cell ?? "–"));
  return el("div.scroll", { role: "region", "aria-label": caption, tabindex: 0 }, el("table", { role: "table" },
    el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads.map((head) =>
      el(head.number ? "th.number" : "th", { role: "columnheader", scope: "col", title: head.title }, head.label)))),
    el("tbody", { role: "rowgroup" }, ...rows.map((row) => el("tr", { role: "row" }, ...cells(row))))));
}

/** Read JSON from the server; a problem is thrown as an Error with its `reason` and `status`. */
export async function ask(path, { method = "GET", body, signal } = {}) {
  const response = await fetch(path, {
    method, signal,
    headers: method === "GET" ? {} : { "content-type": "application/json", "x-pbstream": "1" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const found = await response.json().catch(() => ({}));
  if (response.ok) return found;
  const error = new Error(found.detail || found.title || `The server answered ${response.status}.`);
  throw Object.assign(error, { status: response.status, reason: found.reason });
}

/** The path of a router's data. */
export const api = (id, ...rest) =>
  ["api/routers", encodeURIComponent(id), ...rest.map(encodeURIComponent)].join("/");

/** The address of a page. */
export const page = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Figures of one size beside each other: set([[name, value, what explains it, title], …]). */
export function tiles() {
  const box = el("dl.tiles");
  const set = (facts) => {
    if (box.children.length !== facts.length) box.replaceChildren(...facts.map(() => el("div", {}, el("dt"), el("dd", {}, el("span"), el("small")))));
    facts.forEach(([name, value, more, title], at) => {
      const [term, told] = box.children[at].children;
      say(term, name);
      say(told.firstChild, value);
      say(told.lastChild, more ?? "");
      if (title) box.children[at].title = title;
    });
  };
  return { box, set };
}

/** A sentence with its dollars and its shares in bold. */
export const answer = (text) => text.split(/(\$[\d,]*\.?\d+|\d[\d,.]*[%×])/).map((part, at) => at % 2 ? el("b", {}, part) : part);
