// A textarea with line numbers, and marks where something is wrong. Tab moves on, as everywhere on the page.

import { check } from "./api.js";
import { count, element, say } from "./words.js";

const PAUSE_MS = 250;

/** Calls `edited` as soon as the text changes, and then `checked(ok)`, or `unchecked` where nobody could look at it. */
export class Editor {
  #area = document.getElementById("editor");
  #gutter = document.getElementById("gutter");
  #list = document.getElementById("problems");
  #summary = document.getElementById("problems-summary");
  #timer = 0;
  #current = null;
  #lines = 0;
  #on;

  name = "";

  constructor(on) {
    this.#on = on;
    this.#area.addEventListener("input", () => {
      this.#number();
      this.#on.edited();
      this.#later(PAUSE_MS);
    });
    this.#area.addEventListener("scroll", () => {
      this.#gutter.scrollTop = this.#area.scrollTop;
    });
  }

  get text() {
    return this.#area.value;
  }

  open(name, text) {
    this.name = name;
    this.#area.value = text;
    this.#area.scrollTop = 0;
    this.#number();
    this.#later(0);
  }

  #later(milliseconds) {
    clearTimeout(this.#timer);
    this.#current?.abort();
    this.#timer = setTimeout(() => this.#check(), milliseconds);
  }

  async #check() {
    const mine = new AbortController();
    this.#current = mine;
    try {
      const document = await check({ name: this.name, text: this.text }, mine.signal);
      if (this.#current !== mine) return;
      this.show(document.diagnostics);
      this.#on.checked(document.ok);
    } catch (error) {
      if (error.name === "AbortError") return;
      say(this.#summary, `Not checked: ${error.message}.`);
      this.#on.unchecked();
    }
  }

  /** Lists problems and marks their lines. */
  show(problems) {
    const first = problems.length ? `${count(problems.length, "problem")}. Choose one to go there.` : "No problems.";
    say(this.#summary, first);
    this.#summary.classList.toggle("bad", problems.length > 0);
    this.#list.replaceChildren(...problems.map((problem) => this.#item(problem)));
    const marked = new Set(problems.map((problem) => problem.line));
    [...this.#gutter.children].forEach((line, i) => line.classList.toggle("bad", marked.has(i + 1)));
  }

  #item(problem) {
    const place = problem.line ? `line ${problem.line}` : "everywhere";
    const button = element("button", { type: "button", class: "problem", onclick: () => this.#go(problem) },
      element("span", { class: "place" }, place),
      element("span", {}, problem.message),
      problem.help ? element("span", { class: "help" }, problem.help) : null);
    return element("li", {}, button);
  }

  #go(problem) {
    const lines = this.text.split("\n");
    const line = Math.min(problem.line ?? 1, lines.length) - 1;
    const start = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
    const at = start + Math.min((problem.column ?? 1) - 1, lines[line].length);
    this.#area.focus();
    this.#area.setSelectionRange(at, start + lines[line].length);
    const height = this.#area.scrollHeight / lines.length;
    this.#area.scrollTop = Math.max(0, line * height - this.#area.clientHeight / 2);
  }

  #number() {
    const lines = this.text.split("\n").length;
    if (lines === this.#lines) return;
    this.#lines = lines;
    this.#gutter.replaceChildren(...Array.from({ length: lines }, (_, i) => element("div", {}, String(i + 1))));
    this.#gutter.scrollTop = this.#area.scrollTop;
  }
}
