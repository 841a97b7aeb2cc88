// Charts, drawn by uPlot.

const COLOURS = ["#3b7dd8", "#d9822b", "#3a9b5c", "#b5495b", "#7a5cc7", "#1f9aa8", "#a07a2c", "#c2569e"];
const DASHES = [[], [6, 4], [2, 3], [10, 4, 2, 4]];

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(label) {
  const [faint, line] = [themeColour("faint"), themeColour("line")];
  const font = "11px system-ui, sans-serif";
  return { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, gap: 3, size: label ? 24 : 46,
    font, labelFont: font, label, labelSize: label ? 15 : 0, labelGap: 0 };
}

// A range with room around the values, also where all are equal.
function roomy(_, low, high) {
  const room = high > low ? (high - low) * 0.08 : Math.abs(low) / 10 || 1;
  return [low - room, high + room];
}

function shownValue(_, value) {
  return value === null || value === undefined ? "–" : number(value, 4);
}

// series: [{label, colour, dash, x: [...], y: [...]}]; returns the chart in a figure.
function curveChart(title, series, { smoothing = 1, xLabel = "update", share = false, group } = {}) {
  const figure = el("figure", { class: "chart" }, el("figcaption", {}, visible(title)));
  const place = el("div", { role: "img", "aria-label": plain(`${title}: ${series.map(told).join("; ")}`) });
  figure.append(place);
  const xs = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const at = new Map(xs.map((x, position) => [x, position]));
  const options = { series: [{ label: xLabel, value: shownValue }], data: [xs] };
  for (const one of series) {
    const raw = new Array(xs.length).fill(null);
    one.x.forEach((x, position) => { raw[at.get(x)] = one.y[position]; });
    const smooth = smoothing > 1 ? smoothed(raw, smoothing) : raw;
    if (smoothing > 1) {
      options.data.push(raw);
      options.series.push({ label: plain(`${one.label}, each`), stroke: `${one.colour}40`, width: 1, points: { show: false }, value: shownValue, spanGaps: true, class: "each" });
    }
    options.data.push(smooth);
    options.series.push({ label: plain(one.label), stroke: one.colour, width: 2, dash: one.dash, value: shownValue, spanGaps: true, points: { show: xs.length < 2, size: 7 } });
  }
  const chart = new uPlot({
    width: 380, height: 190, series: options.series, legend: { live: true },
    cursor: { sync: { key: group ?? title }, points: { size: 6 } },
    scales: { x: { time: false, range: xs.length < 2 ? (_, low) => [low - 1, low + 1] : undefined },
      y: share ? { range: (_, low, high) => [Math.min(0, low), Math.max(high * 1.05, 0.05)] } : { range: roomy } },
    axes: [axis(xLabel), axis()],
  }, options.data, place);
  new ResizeObserver(() => { if (place.clientWidth) chart.setSize({ width: place.clientWidth, height: 190 }); }).observe(place);
  return figure;
}

function told(one) {
  const last = one.y.filter((value) => value !== null).at(-1);
  return `${one.label}, last ${number(last)}`;
}

// The mean of the values of the last `window` points.
function smoothed(values, window) {
  return values.map((value, at) => {
    if (value === null) return null;
    const recent = values.slice(Math.max(0, at - window + 1), at + 1).filter((one) => one !== null);
    return recent.reduce((sum, one) => sum + one, 0) / recent.length;
  });
}

// Rewards as bars, returns and advantages as lines; a click goes to the turn.
function drawTurns(place, { rewards, returns, advantages, ends }, open) {
  const turns = rewards.map((_, at) => at + 1);
  const clean = (values) => values.map((value) => (Number.isFinite(value) ? value : null));
  const point = { show: true, size: 5 };
  const series = [{ label: "turn", value: shownValue },
    { label: "reward", stroke: themeColour("quiet-line"), fill: themeColour("quiet-line"), paths: uPlot.paths.bars({ size: [0.5, 26] }), points: { show: false }, value: shownValue },
    { label: ends ? "return" : "return to go", stroke: COLOURS[0], width: 2, points: point, value: shownValue }];
  const data = [turns, clean(rewards), clean(returns)];
  if (advantages) {
    series.push({ label: "advantage", stroke: COLOURS[1], width: 2, points: point, value: shownValue });
    data.push(clean(advantages));
  }
  const chart = new uPlot({ width: place.clientWidth || 300, height: 190, series,
    scales: { x: { time: false, range: [0.4, turns.length + 0.6] }, y: { range: (_, low, high) => roomy(_, Math.min(0, low), Math.max(0, high)) } }, // bars begin at 0
    axes: [{ ...axis("turn"), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, axis()] }, data, place);
  chart.over.addEventListener("click", () => { if (chart.cursor.idx !== null) open(chart.cursor.idx); });
  return chart;
}
