// Two scenarios under the same levers.

import { scenario } from "./api.js";
import { Asker } from "./asker.js";
import { dollars, element, known, number, percent, plain, say, verdict } from "./words.js";

const at = (id) => document.getElementById(id);

export class Compare {
  #asker;
  #levers;
  #first = null;
  #second = null;
  #timer = 0;

  open = false;

  constructor(levers) {
    this.#levers = levers;
    this.#asker = new Asker({
      busy: (yes) => at("compare").setAttribute("aria-busy", String(yes)),
      answer: (document) => {
        this.#second = document;
        this.#show();
      },
      failure: (error) => {
        this.#second = null;
        at("compare-table").tBodies[0].replaceChildren();
        say(at("compare-status"), `No answer for the second scenario: ${error.message}.`);
      },
    });
    at("compare-toggle").addEventListener("click", () => this.#toggle());
    at("compare-select").addEventListener("change", () => this.#load());
    at("compare-editor").addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.ask(), 250);
    });
  }

  /** What the first scenario came to. */
  first(document, name) {
    this.#first = { document, name };
    if (this.open) this.#show();
  }

  ask() {
    if (!this.open || !at("compare-editor").value) return;
    const name = at("compare-select").value;
    this.#asker.ask({ name, text: at("compare-editor").value, levers: this.#levers.values() });
  }

  #toggle() {
    this.open = !this.open;
    at("compare").hidden = !this.open;
    at("compare-toggle").setAttribute("aria-pressed", String(this.open));
    if (this.open) this.#another();
    if (!this.open) this.#asker.stop();
    else if (at("compare-editor").value) this.ask();
    else this.#load();
  }

  /** Nobody means to compare a scenario with itself, unless they edit it. */
  #another() {
    const select = at("compare-select");
    if (at("compare-editor").value || select.value !== this.#first?.name) return;
    const other = [...select.options].find((option) => option.value !== this.#first.name);
    if (other) select.value = other.value;
  }

  async #load() {
    say(at("compare-status"), "Opening…");
    this.#second = null;
    try {
      at("compare-editor").value = (await scenario(at("compare-select").value)).text;
      this.ask();
    } catch (error) {
      say(at("compare-status"), `It cannot be opened: ${error.message}.`);
    }
  }

  #show() {
    if (!this.#first || !this.#second) return;
    const [a, b] = [this.#first.document, this.#second];
    const basis = a.basis === b.basis ? `Both ${a.basis}.` : `The first ${a.basis}, the second ${b.basis}.`;
    say(at("compare-status"), `${basis} The second: ${b.says}`);
    const head = ["", this.#first.name, at("compare-select").value, "Difference"];
    at("compare-table").tHead.replaceChildren(element("tr", {},
      ...head.map((text, i) => element(i ? "th" : "td", { scope: i ? "col" : null, class: i ? "n" : null }, text))));
    at("compare-table").tBodies[0].replaceChildren(...rows(a, b));
  }
}

function rows(a, b) {
  const made = [
    numbers("Load line", a.line?.requests_per_s, b.line?.requests_per_s, (v) => number(v, "requests/s")),
    words("Binds first", a.line?.binds && plain(a.line.binds), b.line?.binds && plain(b.line.binds)),
    numbers("Cost", a.cost?.usd_per_hour, b.cost?.usd_per_hour, (v) => dollars(v, "per hour")),
    numbers("Cost of a good task", a.cost?.usd_per_good_task, b.cost?.usd_per_good_task, dollars),
  ];
  const names = [...new Set([...a.rows, ...b.rows].map((row) => row.name))];
  for (const name of names) {
    const of = (document) => document.rows.find((row) => row.name === name);
    const [one, two] = [of(a), of(b)];
    const difference = known(one?.headroom_pct) && known(two?.headroom_pct)
      ? `${percent(two.headroom_pct - one.headroom_pct).replace("%", "")} points` : "unknown";
    made.push(cells(`Headroom, ${plain(name)}`, headroom(one), headroom(two), difference));
  }
  return made;
}

function headroom(row) {
  if (!row) return "not in it";
  return known(row.headroom_pct) ? `${percent(row.headroom_pct)} ${verdict(row.verdict)}` : "unknown";
}

function numbers(label, a, b, shown) {
  let difference = "unknown";
  if (known(a) && known(b)) difference = a === b ? "same" : a === 0 ? shown(b - a) : percent((b / a - 1) * 100);
  return cells(label, shown(a), shown(b), difference);
}

function words(label, a, b) {
  return cells(label, a ?? "unknown", b ?? "unknown", a === b ? "same" : "differs");
}

function cells(label, ...texts) {
  return element("tr", {}, element("th", { scope: "row" }, label), ...texts.map((text) => element("td", { class: "n" }, text)));
}
