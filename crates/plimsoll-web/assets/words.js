// Numbers as people read them. Unknown is a word and never zero.

const UNKNOWN = "unknown";
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const large = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Three digits, or whole above a thousand, with its unit. */
export function number(value, unit = "") {
  if (!known(value)) return UNKNOWN;
  const text = Math.abs(value) >= 1000 ? large.format(value) : small.format(value);
  return unit ? `${text} ${unit}` : text;
}

export function percent(value) {
  if (!known(value)) return UNKNOWN;
  // A shortfall of a fifth of a percent must not read as none.
  const digits = Math.abs(value) < 1 ? 1 : 0;
  const size = Math.abs(value).toFixed(digits);
  return Number(size) === 0 ? "0%" : `${value > 0 ? "+" : "−"}${size}%`;
}

export function dollars(value, per) {
  if (!known(value)) return UNKNOWN;
  const digits = Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 }
    : Math.abs(value) >= 1 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
    : { maximumSignificantDigits: 3 };
  return `$${new Intl.NumberFormat("en", digits).format(value)}${per ? ` ${per}` : ""}`;
}

export function seconds(value) {
  if (!known(value)) return UNKNOWN;
  return value >= 120 ? `${number(value / 60)} min` : `${number(value)} s`;
}

/** Words for verdicts, so that colour is never all there is. */
export function verdict(value) {
  return { ok: "ok", tight: "tight", shortfall: "SHORTFALL" }[value] ?? UNKNOWN;
}

/** A name of the server in words. */
export function plain(name) {
  return name.replaceAll("_", " ");
}

/** A sentence with what stands between backticks as it is typed. */
export function prose(text) {
  return text.split("`").map((part, i) => i % 2 ? element("code", {}, part) : part);
}

export function count(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** An element with attributes and children; text is text and never markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Changes a text only where it differs, so that screen readers do not repeat themselves. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
