// Charts in the colours of the page, with their words beside them.

const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();

dark.addEventListener("change", () => {
  for (const [target, chart] of drawn) if (target.isConnected) draw(target, chart);
});

/** Draws a chart of the server: `{title, alt, data, layout}`. */
export function draw(target, chart) {
  target.setAttribute("aria-label", chart?.alt ?? "No chart");
  if (!chart) {
    drawn.delete(target);
    window.Plotly?.purge?.(target);
    return;
  }
  drawn.set(target, chart);
  if (!window.Plotly?.react) {
    // Its words are shown below it in any case.
    target.textContent = "The chart cannot be drawn.";
    return;
  }
  window.Plotly.react(target, chart.data, layout(chart.layout ?? {}), {
    displaylogo: false, displayModeBar: false, responsive: true, scrollZoom: false,
  });
}

function layout(given) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const made = {
    ...given,
    title: undefined,
    template: undefined,
    autosize: true,
    width: undefined,
    height: 320,
    margin: { l: 64, r: 16, t: 12, b: 52 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    colorway: ["--series-1", "--series-2", "--series-3", "--series-4"].map(colour),
    font: { ...given.font, color: colour("--text"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    legend: { orientation: "h", y: 1.12, ...given.legend, bgcolor: "rgba(0,0,0,0)", font: { color: colour("--text") } },
    hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--border"), font: { color: colour("--text") } },
  };
  for (const axis of Object.keys(given).filter((key) => /^[xy]axis\d*$/.test(key)).concat("xaxis", "yaxis")) {
    made[axis] = {
      automargin: true,
      ...made[axis],
      color: colour("--muted"),
      gridcolor: colour("--border"),
      zerolinecolor: colour("--border"),
      linecolor: colour("--border"),
    };
  }
  return made;
}
