import { el } from "./dom.js";
export const kindsOf = () => el("div");
export const frontierOf = () => el("div");
