// Work that takes a while: reviews, and profiles of logs. One at a time, with progress and a way out.

import { ask, pause } from "./api.js";
import { draw } from "./chart.js";
import { element, number, prose, say } from "./words.js";

const LOOK_MS = 300;
const at = (id) => document.getElementById(id);

export class Jobs {
  #id = null;
  #work = new AbortController();
  #editor;

  constructor(editor) {
    this.#editor = editor;
    at("run-review").addEventListener("click", () => this.#review());
    at("cancel").addEventListener("click", () => this.#cancel());
    at("upload").addEventListener("change", () => this.#upload(at("upload").files[0]));
    const drop = at("drop");
    drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.#upload(event.dataTransfer.files[0]);
    });
  }

  /** First the document, which says the verdict; then the page, to be saved. */
  #review() {
    const { name, text } = this.#editor;
    return this.#begin(`Review of ${name}`, async () => {
      const id = await this.#run({ body: { study: "review", name, text } }, "jobs", 0, 0.5);
      at("job-summary").replaceChildren(...summary(await ask("GET", `jobs/${id}/result`)));
      const page = await this.#run({ body: { study: "review_html", name, text } }, "jobs", 0.5, 0.5);
      at("download").href = `/api/v1/jobs/${page}/result`;
      at("download").hidden = false;
      return "The review is ready. Save it: it is kept here for a few minutes only.";
    });
  }

  #upload(file) {
    if (!file) return undefined;
    return this.#begin(`Profile of ${file.name}`, async () => {
      say(at("job-state"), "Sending…");
      at("progress").removeAttribute("value");
      const path = `profile?name=${encodeURIComponent(file.name)}`;
      const id = await this.#run({ raw: file }, path, 0, 1);
      profile(at("profile"), await ask("GET", `jobs/${id}/result`));
      return "The profile is ready, below the scenario.";
    });
  }

  async #begin(title, steps) {
    if (at("run-review").disabled) return;
    this.#id = null;
    this.#work = new AbortController();
    say(at("job-title"), title);
    at("job-summary").replaceChildren();
    at("progress").value = 0;
    this.#busy(true);
    try {
      say(at("job-state"), await steps());
      at("progress").value = 1;
    } catch (error) {
      say(at("job-state"), error.name === "AbortError" ? "Cancelled." : `It failed: ${error.message}.`);
      at("progress").value = 0;
    } finally {
      this.#id = null;
      this.#busy(false);
    }
  }

  #busy(yes) {
    at("job").hidden = false;
    at("progress").hidden = !yes;
    at("cancel").hidden = !yes;
    at("run-review").disabled = yes;
    at("upload").disabled = yes;
    if (yes) {
      at("download").hidden = true;
    } else {
      at("upload").value = "";
    }
  }

  /** Starts a job and looks at it until it has ended; its progress is a part of the bar. */
  async #run(options, path, from, part) {
    const { signal } = this.#work;
    const { id } = await ask("POST", path, { ...options, signal });
    this.#id = id;
    for (;;) {
      const job = await ask("GET", `jobs/${id}`, { signal });
      at("progress").value = from + part * job.done;
      if (job.state === "done") return id;
      if (job.state === "cancelled") throw new Error("it was cancelled elsewhere");
      if (job.state === "failed") throw new Error(job.diagnostics.map((d) => d.message).join("; "));
      const words = job.state === "waiting" ? "Waiting for others to finish" : `Working, ${Math.round(100 * (from + part * job.done))}%`;
      say(at("job-state"), words);
      await pause(LOOK_MS, signal);
    }
  }

  async #cancel() {
    // An upload on its way ends with its request, and a job when it is told.
    const id = this.#id;
    this.#work.abort();
    try {
      if (id) await ask("DELETE", `jobs/${id}`);
    } catch (error) {
      say(at("job-state"), `It may still be running: ${error.message}.`);
    }
  }
}

function summary(review) {
  const says = review.verdict?.says;
  const notes = (review.notes ?? []).slice(0, 5);
  return [
    says ? element("p", { class: "verdict" }, ...prose(says)) : null,
    notes.length ? element("ul", { class: "notes" }, ...notes.map((note) => element("li", {}, ...prose(note)))) : null,
  ].filter(Boolean);
}

function profile(target, document) {
  const list = (title, texts) => texts?.length
    ? [element("h3", {}, title), element("ul", { class: "notes" }, ...texts.map((text) => element("li", {}, ...prose(text))))] : [];
  const charts = Array.isArray(document.charts) ? document.charts : [];
  const figures = charts.map((chart) => {
    const box = element("div", { class: "drawing" });
    return { chart, box, figure: element("figure", {}, element("h3", {}, chart.title ?? ""), box, element("figcaption", { class: "faint" }, chart.alt ?? "")) };
  });
  target.replaceChildren(
    element("h3", {}, document.source ?? "The log"),
    element("p", { class: "faint" }, document.from && document.to ? `${document.from} to ${document.to}` : "no dates"),
    ...list("What averages do not say", document.findings?.map((finding) => finding.sentence)),
    ...list("Before you trust it", document.warnings),
    ...(document.classes?.length ? [classes(document.classes)] : []),
    ...figures.map((each) => each.figure),
  );
  for (const { box, chart } of figures) draw(box, chart);
}

function classes(all) {
  const head = ["Class", "Requests", "Requests/s", "Prompt tokens, mean / p95", "Output tokens, mean / p95"];
  const lengths = (of) => of ? `${number(of.mean)} / ${number(of.p95)}` : "unknown";
  const rows = all.map((of) => element("tr", {},
    element("th", { scope: "row" }, of.name),
    element("td", { class: "n" }, number(of.requests)),
    element("td", { class: "n" }, number(of.mean_rps_rows_over_span)),
    element("td", { class: "n" }, lengths(of.prompt)),
    element("td", { class: "n" }, lengths(of.output))));
  return element("div", { class: "scroll" }, element("table", { class: "numbers" },
    element("caption", {}, "Classes"),
    element("thead", {}, element("tr", {}, ...head.map((text, i) => element("th", { scope: "col", class: i ? "n" : null }, text)))),
    element("tbody", {}, ...rows)));
}
