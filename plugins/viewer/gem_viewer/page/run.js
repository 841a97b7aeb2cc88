// The view of runs: curves, environments, settings and their differences.

// of(rows): the value of a point from the episodes of one environment and update.
const MEANS = [
  { title: "Success", share: true, of: (mean) => mean("success") },
  { title: "Return", of: (mean) => mean("return") },
  { title: "Turns", of: (mean) => mean("turns") },
  { title: "Sampled tokens of an episode", of: (mean) => mean("tokens") },
  { title: "Invalid actions, share of turns", share: true, of: (mean) => mean("invalid") / mean("turns") },
  { title: "Truncated responses, share of turns", share: true, of: (mean) => mean("truncated") / mean("turns") },
  { title: "Failed episodes, share", share: true, of: (mean, stops) => stops("env_error") },
  { title: "Tool calls of an episode", of: (mean) => mean("tool_calls") },
  { title: "Tool calls that succeeded, share", share: true, of: (mean) => mean("tool_successes") / mean("tool_calls") },
];

class RunView {
  constructor(app) {
    this.app = app;
    this.runs = app.runs;
    this.hidden = new Set();
    this.smoothing = 1;
    this.only = true;
    this.wanted = ""; // a part of the names of settings
    this.metrics = null; // names of the chosen ones
    this.choosing = false; // whether the choice of metrics is open
    this.charts = el("div", { class: "charts" });
    this.metricCharts = el("div", { class: "charts" });
    this.slots = Object.fromEntries(["head", "environments", "curves", "metrics", "settings"].map((name) => [name, el("div", {})]));
    this.element = el("div", { class: "run", onpointerdown: () => { this._held = true; } }, ...Object.values(this.slots));
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => this._release());
  }

  show() {
    this._said = {};
    this._fill();
  }

  // After news. What a pointer holds stays until it lets go.
  refresh() {
    if (this._held) this._late = true;
    else this._fill();
  }

  // A click follows the pointer's release, and shall find what was pressed.
  _release() {
    this._held = false;
    if (!this._late) return;
    this._late = false;
    setTimeout(() => { if (this.element.isConnected) this.refresh(); });
  }

  _fill() {
    const { scrollY } = window;
    const about = (...fields) => this.runs.runs.map((run) => [run.name, ...fields.map((field) => run[field])]);
    this.parts = this._trainedParts();
    const names = this._metricNames();
    this._slot("head", [about("gaps", "warnings"), this._counted()], () => this._head());
    this._slot("environments", this._parts().map(({ key, rows }) => [key, rows.length, this._facts(rows)]), () => this._environments());
    this._slot("curves", this.parts.map(({ key, label, colour }) => [key, label, colour]), () => this._curves());
    this._slot("metrics", [names, this.parts.length > 0], () => this._metrics(names));
    this._slot("settings", about("settings", "versions"), () => this._settings());
    this._drawCurves();
    this._drawMetrics();
    window.scrollTo(0, scrollY);
  }

  // Makes a part again where what it says has changed. The focus stays where there is the same element again.
  _slot(name, said, make) {
    const text = JSON.stringify(said);
    if (this._said[name] === text) return;
    this._said[name] = text;
    const slot = this.slots[name];
    const focused = slot.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    slot.replaceChildren(make());
    if (focused !== null) [...slot.querySelectorAll("a, input, summary")].find((one) => nameOf(one) === focused)?.focus({ preventScroll: true });
  }

  _head() {
    return el("div", {},
      el("h1", {}, visible(this.runs.runs.map((run) => run.name).join(", ")), " ", el("span", { class: "faint" }, this._counted())),
      this._sentences("What is missing", "gaps"), this._sentences("Warnings", "warnings"));
  }

  _sentences(title, field) {
    const several = this.runs.runs.length > 1;
    const items = this.runs.runs.flatMap((run) => run[field].map((text) => el("li", {}, visible(several ? `${run.name}: ${text}` : text))));
    return items.length ? el("section", { class: `said ${field}`, "aria-label": title }, el("h2", {}, title), el("ul", {}, ...items)) : "";
  }

  _counted() {
    const kinds = [...new Set(this.runs.runs.map((run) => run.kind))].join(", ");
    return `${kinds}, ${integer(this.runs.rows.length)} episodes`;
  }

  // Episodes by run, environment and split.
  _parts() {
    const parts = new Map();
    this.runs.rows.forEach((_, row) => {
      const [run, env, split] = ["run", "env", "split"].map((name) => this.runs.value(row, name));
      const key = JSON.stringify([run, env, split]);
      if (!parts.has(key)) parts.set(key, { key, run, env, split, rows: [] });
      parts.get(key).rows.push(row);
    });
    return [...parts.values()];
  }

  _environments() {
    const several = this.runs.runs.length > 1;
    const splits = this.runs.values("split").length > 0;
    const parts = this._parts();
    if (!parts.length) return el("p", { class: "faint" }, "No episode has ended yet, or none was recorded.");
    const lately = parts.some((part) => this._latest(part).length < part.rows.length);
    const heads = [...(several ? ["Run"] : []), "Environment", ...(splits ? ["Split"] : []), "Episodes", "Success", "Return", "Turns", "Tokens", "Cut off", "Invalid", "Failed", "Tool calls"];
    const lines = parts.map(({ run, env, split, rows }) => {
      const facts = this._facts(this._latest({ split, rows }));
      const query = new URLSearchParams({ ...(several ? { run } : {}), env, ...(split && splits ? { split } : {}) });
      const bar = el("span", { class: "share" });
      bar.style.width = `${100 * facts.success}%`;
      return el("tr", {}, ...(several ? [el("td", {}, visible(run))] : []), el("td", {}, el("a", { href: `#episodes?${query}` }, visible(env))),
        ...(splits ? [el("td", {}, split || "–")] : []), cell(integer(rows.length)),
        el("td", {}, el("div", { class: "success" }, el("span", { class: "share-track" }, bar), el("span", { class: "number" }, percent(facts.success)))),
        cell(number(facts.return)), cell(number(facts.turns, 1)), cell(number(facts.tokens, 0)), cell(percent(facts.truncated)),
        cell(percent(facts.invalid)), cell(percent(facts.failed)), cell(number(facts.tools, 1)));
    });
    return el("section", {}, el("h2", {}, "Environments"),
      lately ? el("p", { class: "faint" }, "Where there was training, all but the number of episodes is of the last fifth of the updates.") : "", el("div", { class: "scroll" },
      el("table", { class: "facts-table" }, el("thead", {}, el("tr", {}, ...heads.map((head, at) => el("th", { scope: "col", class: at >= heads.length - 8 && head !== "Success" ? "number" : null }, head)))), el("tbody", {}, ...lines))));
  }

  // The episodes of the last fifth of the updates, or all where nothing was trained.
  _latest({ split, rows }) {
    const updates = split === "eval" ? [] : byUpdate(this.runs, rows);
    return updates.length ? updates.slice(-Math.max(1, Math.floor(updates.length / 5))).flatMap(([, own]) => own) : rows;
  }

  _facts(rows) {
    const { mean, stops } = this._statistics(rows);
    return { count: rows.length, success: mean("success"), return: mean("return"), turns: mean("turns"), tokens: mean("tokens"),
      truncated: mean("truncated") / mean("turns"), invalid: mean("invalid") / mean("turns"), failed: stops("env_error"), tools: mean("tool_calls") };
  }

  _statistics(rows) {
    const mean = (name) => {
      const values = rows.map((row) => this.runs.value(row, name)).filter((value) => value !== null && !Number.isNaN(value));
      return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN;
    };
    const stops = (stop) => rows.filter((row) => this.runs.value(row, "stop") === stop).length / rows.length;
    return { mean, stops };
  }

  // Curves of the parts that were trained on: colour by run, or by environment where there is one run.
  _trainedParts() {
    const envs = this.runs.values("env");
    const single = this.runs.runs.length === 1;
    return this._parts().filter((part) => part.split !== "eval" && part.rows.some((row) => this.runs.value(row, "update") !== null)).map((part) => {
      const run = this.runs.runs.findIndex((one) => one.name === part.run);
      const env = envs.indexOf(part.env);
      const label = single ? part.env : envs.length === 1 ? part.run : `${part.run}, ${part.env}`;
      return { ...part, label, colour: COLOURS[(single ? env : run) % COLOURS.length], dash: single ? [] : DASHES[env % DASHES.length], updates: byUpdate(this.runs, part.rows) };
    });
  }

  _curves() {
    if (!this.parts.length) return "";
    const toggles = this.parts.map((part) => {
      const box = el("input", { type: "checkbox", checked: !this.hidden.has(part.key), onchange: () => {
        if (box.checked) this.hidden.delete(part.key); else this.hidden.add(part.key);
        this._drawCurves();
      } });
      const mark = el("span", { class: "swatch" });
      mark.style.borderTop = `3px ${part.dash.length ? "dashed" : "solid"} ${part.colour}`;
      return el("label", { class: "toggle" }, box, mark, visible(part.label));
    });
    return el("section", {}, el("h2", {}, "Training"), el("div", { class: "chart-controls" }, ...toggles, this._smoother()), this.charts);
  }

  _smoother() {
    const shown = el("output", {}, smoothingText(this.smoothing));
    const slider = el("input", { type: "range", min: 1, max: 50, value: this.smoothing, oninput: () => {
      this.smoothing = Number(slider.value);
      shown.textContent = smoothingText(this.smoothing);
      this._drawCurves();
      this._drawMetrics();
    } });
    return el("label", { class: "field smoother" }, el("span", {}, "Smoothing"), slider, shown);
  }

  _drawCurves() {
    const parts = this.parts.filter((part) => !this.hidden.has(part.key));
    const charts = [];
    for (const { title, share, of } of MEANS) {
      const series = parts.map((part) => {
        const points = part.updates.map(([update, rows]) => {
          const { mean, stops } = this._statistics(rows);
          return [update, of(mean, stops)];
        }).filter(([, value]) => Number.isFinite(value));
        return { label: part.label, colour: part.colour, dash: part.dash, x: points.map(([x]) => x), y: points.map(([, y]) => y) };
      });
      if (series.some((one) => one.y.some((value) => value !== 0))) charts.push(curveChart(title, series, { smoothing: this.smoothing, share, group: "updates" }));
    }
    if (parts.length) charts.push(this._endings(parts));
    this.charts.replaceChildren(...charts);
  }

  // Shares of the stop reasons, over the shown environments of each run.
  _endings(parts) {
    const series = [];
    for (const [number, run] of this.runs.runs.entries()) {
      const rows = parts.filter((part) => part.run === run.name).flatMap((part) => part.rows);
      const updates = byUpdate(this.runs, rows);
      Object.keys(END_WORDS).forEach((stop, at) => {
        const shares = updates.map(([update, own]) => [update, own.filter((row) => this.runs.value(row, "stop") === stop).length / own.length]);
        if (!shares.some(([, share]) => share)) return;
        const label = this.runs.runs.length === 1 ? END_WORDS[stop] : `${run.name}, ${END_WORDS[stop]}`;
        series.push({ label, colour: COLOURS[at % COLOURS.length], dash: DASHES[number % DASHES.length], x: shares.map(([x]) => x), y: shares.map(([, y]) => y) });
      });
    }
    return curveChart("How episodes ended, share", series, { smoothing: this.smoothing, share: true, group: "updates" });
  }

  _metricNames() {
    return [...new Set(this.runs.runs.flatMap((run) => Object.keys(run.metrics)))].filter((name) => name !== "step").sort();
  }

  // What the trainer reported: any metric by name.
  _metrics(names) {
    if (!names.length) return "";
    this.metrics ??= firstMetrics(names, this.parts.length > 0);
    const boxes = names.map((name) => {
      const box = el("input", { type: "checkbox", checked: this.metrics.includes(name), onchange: () => {
        this.metrics = box.checked ? [...this.metrics, name] : this.metrics.filter((one) => one !== name);
        this._drawMetrics();
      } });
      return el("label", { class: "toggle" }, box, visible(name));
    });
    return el("section", {}, el("h2", {}, "Metrics of the trainer"), this.parts.length ? "" : this._smoother(),
      el("details", { class: "choice", open: this.choosing, ontoggle: (event) => { this.choosing = event.target.open; } }, el("summary", {}, `Choose among ${names.length}`), el("div", { class: "chart-controls" }, ...boxes)), this.metricCharts);
  }

  _drawMetrics() {
    const charts = (this.metrics ?? []).map((name) => {
      const having = this.runs.runs.filter((run) => run.metrics[name]);
      const series = having.map((run) => ({ label: this.runs.runs.length === 1 ? name : run.name, colour: COLOURS[run.number % COLOURS.length], dash: [], x: run.metrics.step, y: run.metrics[name] }));
      return curveChart(name, series, { smoothing: this.smoothing, group: "updates" });
    });
    this.metricCharts.replaceChildren(...charts);
  }

  _settings() {
    const several = this.runs.runs.length > 1;
    const tables = [["Settings", "settings"], ["Versions", "versions"]].map(([title, field]) => this._comparison(title, field)).filter(Boolean);
    if (!tables.length) return "";
    const box = el("input", { type: "checkbox", checked: this.only, onchange: () => { this.only = box.checked; this._settingsAgain(box.type); } });
    const field = el("input", { type: "search", size: 20, value: this.wanted, oninput: () => { this.wanted = field.value.trim(); this._settingsAgain(field.type); } });
    return el("section", { class: "settings" }, el("div", { class: "chart-controls" }, labelled("Names with", field),
      several ? el("label", { class: "toggle" }, box, "Only differences between the runs") : ""), ...tables);
  }

  // After a change of what is shown. The focus stays in the input of this type.
  _settingsAgain(type) {
    const next = this._settings();
    this.element.querySelector(".settings").replaceWith(next);
    const input = next.querySelector(`input[type=${type}]`);
    input.focus();
    if (type === "search") input.setSelectionRange(input.value.length, input.value.length);
  }

  _comparison(title, field) {
    const { runs } = this.runs;
    const names = [...new Set(runs.flatMap((run) => Object.keys(run[field])))];
    if (!names.length) return null;
    const differs = (name) => new Set(runs.map((run) => run[field][name])).size > 1;
    const found = names.filter((name) => name.toLowerCase().includes(this.wanted.toLowerCase()));
    const shown = runs.length > 1 && this.only ? found.filter(differs) : found;
    const lines = shown.map((name) => el("tr", { class: runs.length > 1 && differs(name) ? "differs" : null }, el("th", { scope: "row" }, visible(name)),
      ...runs.map((run) => el("td", {}, run[field][name] === undefined ? el("span", { class: "faint" }, "–") : textBlock(run[field][name])))));
    const head = runs.length > 1 ? [el("thead", {}, el("tr", {}, el("th", { scope: "col" }, title), ...runs.map((run) => el("th", { scope: "col" }, visible(run.name)))))] : [];
    return el("div", {}, el("h2", {}, title), shown.length ? el("div", { class: "scroll" }, el("table", { class: "facts-table" }, ...head, el("tbody", {}, ...lines))) : el("p", { class: "faint" }, this.wanted ? "None has this name." : "They are the same."));
  }
}

function cell(text) {
  return el("td", { class: "number" }, text);
}

// What tells an element from its neighbours.
function nameOf(one) {
  return `${one.tagName} ${one.type ?? ""} ${one.labels?.[0]?.textContent ?? one.textContent}`;
}

function smoothingText(window) {
  return window === 1 ? "none" : `mean of ${window}`;
}

function byUpdate(runs, rows) {
  const updates = new Map();
  for (const row of rows) {
    const update = runs.value(row, "update");
    if (update === null) continue;
    if (!updates.has(update)) updates.set(update, []);
    updates.get(update).push(row);
  }
  return [...updates].sort(([one], [other]) => one - other);
}

// Those that people look at first; the episodes' own are drawn already where episodes are known.
function firstMetrics(names, drawn) {
  const wanted = drawn ? [/eval/, /loss/, /\bkl\b/, /entropy/, /grad/, /clip/] : [/^episode\//, /^stop\//, /eval/, /loss/, /entropy/];
  const found = wanted.flatMap((pattern) => names.filter((name) => pattern.test(name)).slice(0, 3));
  return [...new Set(found)].slice(0, 6);
}
