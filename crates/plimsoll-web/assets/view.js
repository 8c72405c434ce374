// The answer on the page: verdict, launch table, curve, cost.

import { draw } from "./chart.js";
import { dollars, element, known, number, percent, plain, prose, say, seconds, verdict } from "./words.js";

const at = (id) => document.getElementById(id);

export function busy(yes) {
  at("answer").setAttribute("aria-busy", String(yes));
  if (yes) updating();
}

/** What is shown is no longer the answer to what is asked, and must not be labelled as if it were. */
function updating() {
  say(at("basis"), "updating");
  at("basis").className = "badge";
}

/** Another scenario: the answer to the one before says nothing of it. */
export function waiting() {
  at("answers").classList.add("stale");
  updating();
  say(at("verdict"), "Working it out…");
  at("verdict").className = "verdict none";
}

export function answer(document) {
  at("answers").classList.remove("stale");
  say(at("basis"), document.basis);
  at("basis").className = `badge ${document.basis}`;
  if (at("verdict").textContent !== document.says.replaceAll("`", "")) at("verdict").replaceChildren(...prose(document.says));
  at("verdict").className = `verdict ${worst(document.rows)}`;
  say(at("line"), line(document.line));
  at("launch-table").tBodies[0].replaceChildren(...document.rows.map(row));
  at("cost").replaceChildren(
    ...fact("per hour", dollars(document.cost?.usd_per_hour)),
    ...fact("per month, all nodes kept", dollars(document.cost?.nodes_usd_per_month)),
    ...fact("per good task", dollars(document.cost?.usd_per_good_task)),
  );
  at("pools").tBodies[0].replaceChildren(...document.pools.map(pool));
  at("pools").hidden = document.pools.length === 0;
  at("notes").replaceChildren(...document.notes.map((note) => element("li", {}, ...prose(note))));
  draw(at("curve"), document.chart);
  say(at("curve-words"), document.chart?.alt ?? "");
}

/** Says why there is no answer; the one before stays to be seen, but faded. */
export function failure(words) {
  at("answers").classList.add("stale");
  say(at("basis"), "");
  at("basis").className = "badge";
  say(at("verdict"), words);
  at("verdict").className = "verdict none";
}

function worst(rows) {
  for (const one of ["shortfall", "tight", "ok"]) {
    if (rows.some((each) => each.verdict === one)) return one;
  }
  return "none";
}

function line(of) {
  if (!of) return "";
  const parts = [];
  if (known(of.load)) parts.push(`Load line at ×${number(of.load)} of this demand`);
  if (known(of.requests_per_s)) parts.push(number(of.requests_per_s, "requests/s"));
  if (of.binds) parts.push(`${plain(of.binds)} binds${of.of ? ` (${of.of})` : ""}`);
  if (of.first_signal) parts.push(`first signal: ${plain(of.first_signal)}`);
  return parts.join(" · ");
}

function row(of) {
  const cell = (label, text, name) => element("td", { class: name, "data-label": label }, text);
  return element("tr", { class: of.verdict ?? "none" },
    element("th", { scope: "row" }, plain(of.name), " ", element("span", { class: "unit" }, of.unit ?? "")),
    cell("Demand", number(of.demand), "n"),
    cell("Load line", number(of.load_line), "n"),
    element("td", { class: "use", "data-label": "In use" }, meter(of)),
    cell("Headroom", percent(of.headroom_pct), "n"),
    element("td", { "data-label": "Verdict" }, element("span", { class: `word ${of.verdict ?? "none"}` }, verdict(of.verdict))));
}

/** How much of the load line the demand takes; the mark is the line. The numbers beside it say the same. */
function meter(of) {
  const bar = element("span", { class: "meter", "aria-hidden": "true" });
  if (!known(of.demand) || !known(of.load_line) || of.load_line <= 0) {
    bar.classList.add("empty");
    return bar;
  }
  bar.style.setProperty("--use", String(Math.min(of.demand / of.load_line, 1.5) / 1.5));
  return bar;
}

function pool(of) {
  const cell = (label, text) => element("td", { class: "n", "data-label": label }, text);
  return element("tr", {},
    element("th", { scope: "row" }, of.name),
    cell("Replicas", number(of.replicas)),
    cell("Needed", number(of.needed)),
    cell("Startup p90", seconds(of.startup_p90_s)),
    cell("Cost", dollars(of.usd_per_hour, "per hour")));
}

function fact(label, value) {
  return [element("div", {}, element("dt", {}, label), element("dd", {}, value))];
}
