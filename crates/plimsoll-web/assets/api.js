// Questions to the server. What goes wrong is thrown as a Refusal, in words.

const RETRIES = 6;

export class Refusal extends Error {
  constructor(status, diagnostics) {
    super(diagnostics.map((d) => d.help ? `${d.message} (${d.help})` : d.message).join("; "));
    this.status = status;
    this.diagnostics = diagnostics;
  }
}

/** Asks, and asks again after as long as the server says when its line is full. */
export async function ask(method, path, { body, raw, signal } = {}) {
  for (let tries = 0; ; tries += 1) {
    const response = await send(method, path, { body, raw, signal });
    if (response.ok) return response.json();
    if (response.status === 429 && tries < RETRIES && raw === undefined) {
      await pause(1000 * (Number(response.headers.get("retry-after")) || 1), signal);
      continue;
    }
    throw await refusal(response);
  }
}

async function send(method, path, { body, raw, signal }) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const content = body === undefined ? raw : JSON.stringify(body);
  try {
    return await fetch(`/api/v1/${path}`, { method, headers, body: content, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, [{ message: "the server does not answer", help: "is `plimsoll serve` still running?" }]);
  }
}

async function refusal(response) {
  try {
    return new Refusal(response.status, (await response.json()).diagnostics);
  } catch {
    return new Refusal(response.status, [{ message: `the server answered ${response.status}` }]);
  }
}

/** Waits, unless nobody waits any more. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const gone = () => {
      clearTimeout(timer);
      reject(new DOMException("nobody waits", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", gone);
      resolve();
    }, milliseconds);
    if (signal?.aborted) gone();
    signal?.addEventListener("abort", gone, { once: true });
  });
}

export const scenarios = () => ask("GET", "scenarios");
export const scenario = (name) => ask("GET", `scenarios/${encodeURIComponent(name)}`);
export const check = (body, signal) => ask("POST", "check", { body, signal });
export const whatIf = (body, signal) => ask("POST", "what-if", { body, signal });
