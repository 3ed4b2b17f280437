// What draws, with its style: the table of all routers needs neither, so both come with the first page that draws.

import uPlot from "./vendor/uPlot.mjs";
import { el } from "./dom.js";

await new Promise((done) => document.head.append(
  el("link", { rel: "stylesheet", href: "assets/vendor/uPlot.css", onload: done, onerror: done })));
export default uPlot;
