// Charts come drawn; the page's own script for charts says what they show where they are pointed at.

/** Shows a chart of the server: `{title, alt, html}`. What is in `html` cannot run: the policy of the page names no such script. */
export function draw(target, chart) {
  const parsed = new DOMParser().parseFromString(chart?.html ?? "", "text/html");
  target.replaceChildren(...parsed.body.childNodes);
}
