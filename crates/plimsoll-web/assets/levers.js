// Sliders: what may be moved, in words with units.

import { element } from "./words.js";

const times = (what) => (value) => `×${value.toFixed(2)} ${what}`;

const LEVERS = [
  { key: "demand", label: "Demand", low: 0.1, high: 5, step: 0.05, start: 1, words: times("demand") },
  { key: "prompt", label: "Prompt length", low: 0.1, high: 5, step: 0.05, start: 1, words: times("prompt tokens") },
  { key: "output", label: "Output length", low: 0.1, high: 5, step: 0.05, start: 1, words: times("output tokens") },
  { key: "cache_hit", label: "Cache", low: 0, high: 1, step: 0.05, start: 1, words: (value) => `cache hits ×${value.toFixed(2)} of those stated` },
  { key: "replicas", label: "Replicas", low: 0.1, high: 5, step: 0.05, start: 1, words: times("replicas of today") },
  { key: "startup", label: "Startup time", low: 0, high: 5, step: 0.1, start: 1, words: times("time to start") },
  { key: "lost", label: "Failure", low: 0, high: 16, step: 1, start: 0, words: (value) => `replicas lost at the peak: ${value}` },
];

/** Builds the sliders; `moved` is called whenever one moves. */
export function makeLevers(root, resetAll, moved) {
  const rows = LEVERS.map((lever) => row(lever, moved));
  root.replaceChildren(...rows.map((made) => made.root));
  resetAll.addEventListener("click", () => {
    for (const made of rows) made.set(made.lever.start);
    moved();
  });
  return {
    values: () => Object.fromEntries(rows.map((made) => [made.lever.key, made.value()])),
  };
}

function row(lever, moved) {
  const id = `slider-${lever.key.replace("_", "-")}`;
  const input = element("input", {
    type: "range", id, min: lever.low, max: lever.high, step: lever.step, value: lever.start,
  });
  const output = element("output", { for: id, id: `${id}-words` });
  const back = `Reset ${lever.label.toLowerCase()}`;
  const reset = element("button", { type: "button", class: "quiet", "aria-label": back, title: back }, "↺");
  const value = () => Number(input.value);
  const show = () => {
    const words = lever.words(value());
    output.textContent = words;
    input.setAttribute("aria-valuetext", words);
    const moved = value() !== lever.start;
    reset.disabled = !moved;
    root.classList.toggle("moved", moved);
  };
  const root = element("div", { class: "lever" }, element("label", { for: id }, lever.label), output, reset, input);
  const set = (next) => {
    input.value = String(next);
    show();
  };
  input.addEventListener("input", () => {
    show();
    moved();
  });
  reset.addEventListener("click", () => {
    set(lever.start);
    // The button is disabled now, and focus must not be lost with it.
    input.focus();
    moved();
  });
  show();
  return { root, lever, value, set };
}
