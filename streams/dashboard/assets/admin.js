import { el } from "./dom.js";
export const changesOf = () => ({ box: el("div"), take() {} });
