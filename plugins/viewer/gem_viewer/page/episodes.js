// The view of all episodes: filters, histograms of the selection, the table.

const COLUMNS = [
  { name: "run", title: "Run" },
  { name: "env", title: "Environment" },
  { name: "agent", title: "Agent", help: "Whose episode of a match it is" },
  { name: "split", title: "Split" },
  { name: "update", title: "Update", number: true },
  { name: "task_id", title: "Task", number: true, help: "Number of the task in the run" },
  { name: "data_index", title: "Row", number: true, help: "The row of the data, for environments over data" },
  { name: "seed", title: "Seed", number: true },
  { name: "success", title: "Solved" },
  { name: "return", title: "Return", number: true },
  { name: "turns", title: "Turns", number: true },
  { name: "tokens", title: "Tokens", number: true, help: "Sampled tokens of all turns" },
  { name: "stop", title: "Ended by" },
  { name: "invalid", title: "Invalid", number: true, help: "Turns whose action the environment could not use" },
  { name: "tool_calls", title: "Tools", number: true, help: "Turns that a tool answered" },
  { name: "error", title: "Error" },
];

const SEEN_CHOICES = { outcome: [["", "any"], ["solved", "solved"], ["not", "not solved"], ["failed", "environment failed"]],
  with: [["", "anything"], ["invalid", "invalid actions"], ["truncated", "truncated responses"], ["tool_calls", "tool calls"]] };

class EpisodesView {
  constructor(app) {
    this.app = app;
    this.runs = app.runs;
    this.selection = app.selection;
    this.table = new LongTable(this._columns(), {
      label: "Episodes",
      sort: (name) => this._sort(name),
      open: (row) => app.openEpisode(row),
    });
    this.count = el("p", { class: "count", role: "status" });
    this.histograms = el("div", { class: "histograms" });
    this.form = el("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); this._search(); } });
    this.form.addEventListener("focusout", (event) => { if (!this.form.contains(event.relatedTarget)) this._renewFilters(); });
    this.wrong = el("p", { class: "wrong", role: "alert" });
    this.searching = false;
    this.element = el("div", { class: "episodes" }, this.form, this.wrong, this.histograms, this.count, this.table.element);
  }

  _columns() {
    const said = (name) => this.runs.values(name).length > 0;
    const several = { run: this.runs.runs.length > 1, split: this.runs.values("split").length > 1 };
    const kept = COLUMNS.filter(({ name }) => several[name] ?? said(name));
    return kept.map((column) => ({ ...column, cell: (row) => this._cell(column.name, row) }));
  }

  _cell(name, row) {
    const value = this.runs.value(row, name);
    if (name === "success") return value ? { text: "solved", kind: "good" } : { text: "no", kind: "quiet" };
    if (name === "stop") return { text: END_WORDS[value] ?? value, kind: value === "env_error" ? "bad" : "quiet" };
    if (name === "error" || name === "env" || name === "agent" || name === "run") return shownText(preview(value ?? "", 70));
    if (name === "seed") return value;
    return typeof value === "string" ? shownText(value) : number(value);
  }

  show(query) {
    this.selection.state = new URLSearchParams(query);
    this._renewColumns();
    this._fill();
    this._search();
  }

  // After news: columns and choices may have values that had none.
  refresh() {
    this._renewColumns();
    if (!this.form.contains(document.activeElement)) this._renewFilters();
    this._changed();
  }

  _renewColumns() {
    const columns = this._columns();
    const said = columns.map((column) => column.name).join();
    if (said === this._columnNames) return;
    this._columnNames = said;
    this.table.setColumns(columns);
  }

  _renewFilters() {
    if (this._choices() !== this._filled) this._fill();
  }

  _choices() {
    return JSON.stringify([...Object.keys(CHOICES).map((name) => this.runs.values(name)), this.runs.values("error").length > 0]);
  }

  _fill() {
    this._filled = this._choices();
    const set = (name) => (value) => { this.selection.set(name, value); this._changed(); };
    const fields = [];
    for (const [name, title] of Object.entries(CHOICES)) {
      const values = this.runs.values(name);
      if (values.length < 2) continue;
      const options = [["", "all"], ...values.map((value) => [value, name === "stop" ? (END_WORDS[value] ?? value) : plain(preview(value, 50))])];
      fields.push(labelled(title, select(options, this.selection.get(name), set(name))));
    }
    fields.push(labelled("Outcome", select(SEEN_CHOICES.outcome, this.selection.get("outcome"), set("outcome"))));
    fields.push(labelled("With", select(SEEN_CHOICES.with, this.selection.get("with"), set("with"))));
    for (const [name, title] of Object.entries(RANGES)) fields.push(labelled(title, this._input(name, "3 or 3..7", 8)));
    if (this.runs.values("error").length) fields.push(labelled("Error has", this._input("error", "text", 12)));
    fields.push(labelled("Observations and responses have", this._input("text", "text, then Enter", 24)));
    fields.push(el("button", { type: "submit" }, "Search"));
    fields.push(el("button", { type: "button", onclick: () => { location.hash = "#episodes"; } }, "Clear"));
    this.form.replaceChildren(...fields);
  }

  _input(name, placeholder, size) {
    const input = el("input", { type: name === "text" ? "search" : "text", name, placeholder, size, value: this.selection.get(name) });
    input.addEventListener(name === "text" ? "change" : "input", () => {
      if (this.selection.get(name) === input.value.trim()) return;
      this.selection.set(name, input.value.trim());
      if (name === "text") this._search();
      else this._changed();
    });
    return input;
  }

  _sort(name) {
    const down = this.selection.get("sort") === name && this.selection.get("order") !== "down";
    this.selection.set("sort", name);
    this.selection.set("order", down ? "down" : "");
    this._changed();
  }

  _changed() {
    if (this.selection.get("text") || this.searching) this._search();
    else this._draw();
  }

  // The rows stay until it is complete.
  async _search() {
    this.searching = true;
    let failure = "";
    try {
      if (!(await this.selection.search((text) => { this.count.textContent = text; }))) return;
    } catch (error) {
      failure = `. The search stopped, “Search” goes on: ${error.message}`;
    }
    this.searching = false;
    this._draw(failure);
  }

  // Draws what the selection says.
  _draw(failure = "") {
    this.selection.apply();
    const rows = this.selection.rows;
    if (this.app.name === "episodes") this.app.remember(`episodes?${this.selection.state}`);
    this._markWrong();
    const solved = rows.filter((row) => this.runs.value(row, "success")).length;
    const all = rows.length === this.runs.rows.length ? "" : ` of ${integer(this.runs.rows.length)}`;
    this.count.textContent = `${integer(rows.length)}${all} episodes${rows.length ? `, ${percent(solved / rows.length)} solved` : ""}${this._unread()}${failure}`;
    this.table.show(rows, this.selection.get("sort"), this.selection.get("order"));
    this._drawHistograms(rows);
  }

  _unread() {
    const count = this.selection.looked?.unreadable.size ?? 0;
    return count ? `; ${integer(count)} could not be read` : "";
  }

  // Says which ranges cannot be read; they narrow nothing.
  _markWrong() {
    const wrong = Object.keys(RANGES).filter((name) => this.selection.get(name) && !range(this.selection.get(name)));
    for (const name of Object.keys(RANGES)) {
      const field = this.form.elements[name];
      if (wrong.includes(name)) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
    const said = wrong.map((name) => `${RANGES[name]} “${preview(this.selection.get(name), 20)}”`).join(", ");
    const text = wrong.length ? `No range: ${said}. Write 3, 3..7, 3.. or ..7.` : "";
    if (this.wrong.textContent !== text) this.wrong.textContent = text;
  }

  _drawHistograms(rows) {
    const numbers = (name) => rows.map((row) => this.runs.value(row, name)).filter((value) => Number.isFinite(value));
    const narrow = (name) => (low, high) => { this.selection.set(name, low === high ? String(low) : `${low}..${high}`); this._fill(); this._changed(); };
    const drawn = ["return", "turns", "tokens"].map((name) => histogram(RANGES[name], numbers(name), narrow(name)));
    const ends = Object.keys(END_WORDS).map((stop) => [END_WORDS[stop], rows.filter((row) => this.runs.value(row, "stop") === stop).length]);
    this.histograms.replaceChildren(...drawn, shares("Ended by", ends, rows.length));
  }
}

const BARS = 24;
const BAR = 41; // pixels of the widest bar and its gap
const MIN_PLOT = 120;

// Bars of how often numbers occur; a click on one narrows the selection to it.
function histogram(title, numbers, narrow) {
  const low = numbers.reduce((least, one) => Math.min(least, one), Infinity);
  const high = numbers.reduce((most, one) => Math.max(most, one), -Infinity);
  const figure = el("figure", {}, el("figcaption", {}, title));
  if (!numbers.length) {
    figure.append(el("p", { class: "faint" }, "nothing to show"));
    return figure;
  }
  const whole = numbers.every(Number.isInteger);
  const width = whole ? Math.max(1, Math.ceil((high - low + 1) / BARS)) : (high - low) / BARS || 1;
  const size = whole ? Math.ceil((high - low + 1) / width) : high > low ? BARS : 1;
  const [counts, least, largest] = [0, Infinity, -Infinity].map((value) => new Array(size).fill(value));
  for (const one of numbers) {
    const at = Math.min(size - 1, Math.floor((one - low) / width));
    counts[at]++;
    least[at] = Math.min(least[at], one);
    largest[at] = Math.max(largest[at], one);
  }
  const most = Math.max(...counts);
  const bars = counts.map((count, at) => {
    // Of other numbers those that the bar has: where bars meet, one number belongs to one of them.
    const from = whole || !count ? low + at * width : least[at];
    const to = whole ? from + width - 1 : count ? largest[at] : from + width;
    const range = from === to ? number(from) : `${number(from)} to ${number(to)}`;
    const bar = el("button", { type: "button", class: "bar", title: `${range}: ${integer(count)}`, disabled: !count,
      "aria-label": `${title} ${range}: ${integer(count)} episodes`, onclick: () => narrow(rounded(from, -1), rounded(to, 1)) }, el("span"));
    bar.firstChild.style.height = `${count ? Math.max(4, (100 * count) / most) : 0}%`;
    return bar;
  });
  const mean = numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  const plot = el("div", {}, el("div", { class: "bars" }, ...bars), el("div", { class: "axis" },
    el("span", {}, number(low)), el("span", { class: "faint" }, `mean ${number(mean, 2)}`), el("span", {}, number(high))));
  plot.style.maxWidth = `${Math.max(MIN_PLOT, size * BAR)}px`; // so that the axis ends where the bars do
  figure.append(plot);
  return figure;
}

// To 7 digits, down or up, so that a range still has the number.
function rounded(value, direction) {
  const near = +value.toPrecision(7);
  if (direction * (near - value) >= 0) return near;
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 6);
  return +(near + direction * step).toPrecision(7);
}

function shares(title, counts, total) {
  const lines = counts.filter(([, count]) => count).map(([name, count]) => {
    const bar = el("span", { class: "share" });
    bar.style.width = `${(100 * count) / total}%`;
    return el("div", { class: "share-line" }, el("span", { class: "share-name" }, name),
      el("span", { class: "share-track" }, bar), el("span", { class: "number" }, percent(count / total)));
  });
  return el("figure", { class: "shares" }, el("figcaption", {}, title), ...lines);
}
