'use strict';
// What a chart says where it is pointed at. It is drawn without this, and its legend switches series without it.
(() => {
  const tip = document.createElement('div');
  tip.className = 'tip';
  const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  cursor.setAttribute('class', 'cursor');
  const hide = () => { tip.remove(); cursor.remove(); };
  const part = (tag, text, name) => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  /** Shows lines beside the pointer: text, or a series with its value. */
  const show = (chart, event, head, lines) => {
    tip.replaceChildren(part('b', head), ...lines.map(([ink, name, value]) => {
      const line = part('div', '');
      line.append(part('i', '', ink), `${name}: `, part('b', value));
      return line;
    }));
    chart.append(tip);
    const box = chart.getBoundingClientRect();
    const right = event.clientX - box.left + 16;
    const left = right + tip.offsetWidth > box.width ? right - tip.offsetWidth - 32 : right;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, event.clientY - box.top - tip.offsetHeight - 8)}px`;
  };
  /** The values of every series of a panel at the x that is nearest. */
  const read = (plot, panel, event) => {
    const ground = panel.querySelector('.ground').getBoundingClientRect();
    const { low, high, log, time } = plot.dataset;
    const share = (x) => log === undefined ? (x - low) / (high - low) : Math.log(x / low) / Math.log(high / low);
    const at = (event.clientX - ground.left) / ground.width;
    const series = [...panel.querySelectorAll('path[data-at]')].filter((path) => getComputedStyle(path).display !== 'none').map((path) => {
      const says = path.dataset.says.split(';');
      // Moments are minutes from the first.
      const points = path.dataset.at.split(' ').map((x, i) => {
        const value = time === undefined ? Number(x) : Number(low) + 60 * x;
        return { path, value, says: says[i], off: Math.abs(share(value) - at) };
      });
      return points.filter((point) => point.says).reduce((a, b) => b.off < a.off ? b : a, { off: Infinity });
    });
    const best = series.reduce((a, b) => b.off < a.off ? b : a, { off: Infinity });
    if (!best.path) return hide();
    const x = `${100 * share(best.value)}%`;
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    const rect = panel.querySelector('.ground');
    const top = Number(rect.getAttribute('y'));
    cursor.setAttribute('y1', top);
    cursor.setAttribute('y2', top + Number(rect.getAttribute('height')));
    panel.append(cursor);
    const when = time === undefined ? best.value : new Date(1000 * best.value).toISOString().slice(0, 16).replace('T', ' ');
    const head = plot.dataset.x ? `${plot.dataset.x}: ${when}` : when;
    const same = series.filter((point) => Math.abs(point.value - best.value) <= 1e-9 * Math.abs(best.value));
    const unit = rect.dataset.unit;
    const ink = (path) => [...path.classList].find((name) => name.startsWith('i-'));
    show(plot.parentNode, event, head, same.map(({ path, says }) => [ink(path), path.dataset.name, path.dataset.name === unit ? says : `${says} ${unit}`]));
  };
  const look = (event) => {
    const plot = event.target.closest?.('.plot');
    if (!plot) return hide();
    const named = event.target.closest('.block, .point');
    const title = named?.querySelector('title');
    if (title) {
      // A browser would show it a second time.
      named.dataset.says = title.textContent;
      title.remove();
    }
    if (named?.dataset.says) {
      cursor.remove();
      return show(plot.parentNode, event, named.dataset.says, []);
    }
    const panel = event.target.closest('.panel');
    return panel?.querySelector('path[data-at]') ? read(plot, panel, event) : hide();
  };
  document.addEventListener('pointermove', look);
  document.addEventListener('pointerdown', look);
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
  // Paper shows what is folded away, too.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    folded.forEach((fold) => { fold.open = true; });
  });
  addEventListener('afterprint', () => folded.forEach((fold) => { fold.open = false; }));
})();
