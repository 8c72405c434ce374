// Asks what-ifs as levers move: the approximate answer at once, the simulated one a moment after the last move.

import { pause, whatIf } from "./api.js";

const SETTLE_MS = 60;
const REST_MS = 400;

export class Asker {
  #current = null;
  #show;

  /** `show` has `busy(yes)`, `answer(document)` and `failure(error)`. */
  constructor(show) {
    this.#show = show;
  }

  /** Forgets the question before this one, and its answer if that comes late. */
  async ask(question) {
    this.stop();
    const mine = new AbortController();
    this.#current = mine;
    const { signal } = mine;
    this.#show.busy(true);
    try {
      await pause(SETTLE_MS, signal);
      const rested = pause(REST_MS - SETTLE_MS, signal);
      // It is awaited only after the first answer; until then nobody minds that it ends early.
      rested.catch(() => {});
      await this.#answer(mine, { ...question, basis: "approximate" });
      await rested;
      await this.#answer(mine, { ...question, basis: "simulated" });
    } catch (error) {
      if (error.name !== "AbortError" && this.#current === mine) this.#show.failure(error);
    } finally {
      if (this.#current === mine) this.#show.busy(false);
    }
  }

  stop() {
    this.#current?.abort();
    this.#current = null;
    this.#show.busy(false);
  }

  async #answer(mine, question) {
    const document = await whatIf(question, mine.signal);
    if (this.#current === mine) this.#show.answer(document);
  }
}
