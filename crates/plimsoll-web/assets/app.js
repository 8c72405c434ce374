// Puts the parts together: a scenario and levers in, an answer out.

import { scenario, scenarios } from "./api.js";
import { Asker } from "./asker.js";
import { Compare } from "./compare.js";
import { Editor } from "./editor.js";
import { Jobs } from "./jobs.js";
import { makeLevers } from "./levers.js";
import * as view from "./view.js";
import { count, element, say } from "./words.js";

const at = (id) => document.getElementById(id);

/** Texts as they were opened, and as they are edited: by name. */
const opened = new Map();
const drafts = new Map();
let fine = false;

const asker = new Asker({
  busy: view.busy,
  answer: (document) => {
    view.answer(document);
    compare.first(document, editor.name);
  },
  failure: (error) => {
    if (error.status === 422) editor.show(error.diagnostics);
    view.failure(`No answer: ${error.message}.`);
  },
});

const editor = new Editor({
  edited: () => {
    asker.stop();
    view.busy(true);
    drafts.set(editor.name, editor.text);
    at("revert").hidden = editor.text === opened.get(editor.name);
  },
  checked: (ok) => {
    fine = ok;
    if (ok) {
      askFirst();
    } else {
      asker.stop();
      view.failure(`The scenario has ${count(at("problems").children.length, "problem")}; the answer follows when there are none.`);
    }
  },
  unchecked: () => {
    fine = false;
    view.failure("No answer: the scenario could not be checked.");
  },
});

const levers = makeLevers(at("levers"), at("reset-levers"), () => {
  askFirst();
  compare.ask();
});
const compare = new Compare(levers);
new Jobs(editor);

function askFirst() {
  if (fine) asker.ask({ name: editor.name, text: editor.text, levers: levers.values() });
}

async function open(name) {
  try {
    if (!opened.has(name)) opened.set(name, (await scenario(name)).text);
    // Somebody may have chosen another one meanwhile.
    if (at("scenario-select").value !== name) return;
    const text = drafts.get(name) ?? opened.get(name);
    fine = false;
    asker.stop();
    view.waiting();
    at("revert").hidden = text === opened.get(name);
    document.title = `${name} · Plimsoll`;
    editor.open(name, text);
  } catch (error) {
    complain(`${name} cannot be opened: ${error.message}.`);
  }
}

function complain(words) {
  say(at("page-failure"), words);
  at("page-failure").hidden = words === "";
}

function options(list) {
  const group = (label, some) => some.length
    ? [element("optgroup", { label }, ...some.map((each) => element("option", { value: each.name }, `${each.title} (${each.name})`)))] : [];
  return [
    ...group("Examples", list.filter((each) => each.example)),
    ...group("Workspace", list.filter((each) => !each.example)),
  ];
}

async function start() {
  at("scenario-select").addEventListener("change", () => {
    complain("");
    open(at("scenario-select").value);
  });
  at("revert").addEventListener("click", () => {
    drafts.delete(editor.name);
    at("revert").hidden = true;
    editor.open(editor.name, opened.get(editor.name));
    at("editor").focus();
  });
  try {
    const list = await scenarios();
    say(at("version"), list.version);
    at("scenario-select").replaceChildren(...options(list.scenarios));
    at("compare-select").replaceChildren(...options(list.scenarios));
    if (list.scenarios.length === 0) {
      complain("There is no scenario to open; paste one into the editor.");
      return;
    }
    at("compare-select").value = list.scenarios[Math.min(1, list.scenarios.length - 1)].name;
    await open(at("scenario-select").value);
  } catch (error) {
    complain(`Scenarios cannot be listed: ${error.message}.`);
  }
}

start();
