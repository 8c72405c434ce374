'use strict';
(() => {
  // Charts take their fonts and rules from the page, so that they follow light, dark and print.
  const paper = { '--ink': '#000000', '--rule': '#b9c2cb', '--paper': '#ffffff', '--soft': '#3c4650' };
  let printing = false;
  const of = (name) => {
    // Before a page is printed it still has the colours of the screen.
    if (printing) return paper[name];
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  };
  const axes = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));
  const theme = (layout) => {
    const ink = of('--ink');
    const rule = of('--rule');
    const own = {
      'font.color': ink,
      'hoverlabel.bgcolor': of('--paper'),
      'hoverlabel.bordercolor': rule,
      'hoverlabel.font.color': ink,
      'modebar.color': of('--soft'),
      'modebar.activecolor': ink,
      'modebar.bgcolor': 'rgba(0,0,0,0)',
    };
    for (const axis of axes(layout)) {
      own[axis + '.gridcolor'] = rule;
      own[axis + '.linecolor'] = rule;
      own[axis + '.zerolinecolor'] = rule;
    }
    return own;
  };
  const put = (object, path, value) => {
    const parts = path.split('.');
    const last = parts.pop();
    let at = object;
    for (const part of parts) {
      at[part] = at[part] || {};
      at = at[part];
    }
    at[last] = value;
  };
  const config = { responsive: true, displaylogo: false, displayModeBar: 'hover', locale: 'en', doubleClick: 'reset', modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'] };
  const drawn = new Map();
  const draw = (block) => {
    const place = document.getElementById(block.dataset.for);
    if (!place || drawn.has(place)) return;
    const chart = JSON.parse(block.textContent);
    for (const [path, value] of Object.entries(theme(chart.layout))) put(chart.layout, path, value);
    drawn.set(place, chart.layout);
    Plotly.newPlot(place, chart.data, chart.layout, config);
  };
  const blocks = [...document.querySelectorAll('script.chart-data')];
  const all = () => blocks.forEach(draw);
  if ('IntersectionObserver' in window) {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        blocks.filter((block) => block.dataset.for === entry.target.id).forEach(draw);
      }
    }, { rootMargin: '400px' });
    for (const block of blocks) {
      const place = document.getElementById(block.dataset.for);
      if (place) seen.observe(place);
    }
  } else {
    all();
  }
  const repaint = () => drawn.forEach((layout, place) => Plotly.relayout(place, theme(layout)));
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  // Paper shows everything: what is folded away, and what was not scrolled to.
  let folded = [];
  window.addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    folded.forEach((own) => { own.open = true; });
    printing = true;
    all();
    repaint();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    folded.forEach((own) => { own.open = false; });
    repaint();
  });
})();
