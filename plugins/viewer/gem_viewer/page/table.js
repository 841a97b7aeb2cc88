// A table that draws only the rows that can be seen.

const ROW_HEIGHT = 28; // pixels, as in style.css
const SPARE_ROWS = 6;

class LongTable {
  // columns: [{name, title, cell(row) -> text, node, or {text, kind} of a badge, number}]; open(row) is called by a click
  // or Enter.
  constructor(columns, { sort, open, label }) {
    this.open = open;
    this.sort = sort;
    this.rows = [];
    this.current = 0;
    this._id = label.toLowerCase();
    this._body = el("tbody", { role: "rowgroup" });
    this._headLine = el("tr", { role: "row", "aria-rowindex": 1 });
    this._above = spacer();
    this._below = spacer();
    const table = el("table", { role: "presentation" }, el("thead", { role: "rowgroup" }, this._headLine), this._body);
    this.element = el("div", { class: "long-table", tabindex: 0, role: "grid", "aria-label": `${label}, arrow keys and Enter`,
      onscroll: () => this._draw(), onkeydown: (event) => this._key(event) }, table);
    this.setColumns(columns);
    new ResizeObserver(() => this._draw()).observe(this.element);
  }

  setColumns(columns) {
    this.columns = columns;
    this._heads = columns.map((column) =>
      el("th", { scope: "col", role: "columnheader", class: column.number ? "number" : null },
        el("button", { type: "button", onclick: () => this.sort(column.name), title: column.help }, column.title)));
    this._headLine.replaceChildren(...this._heads);
    this._lines = [];
    this._body.replaceChildren();
    this.element.setAttribute("aria-colcount", columns.length);
  }

  show(rows, sortedBy, order) {
    this.rows = rows;
    this.current = Math.min(this.current, Math.max(0, rows.length - 1));
    this.columns.forEach((column, at) => {
      const sorted = column.name === sortedBy ? (order === "down" ? "descending" : "ascending") : null;
      if (sorted) this._heads[at].setAttribute("aria-sort", sorted);
      else this._heads[at].removeAttribute("aria-sort");
    });
    this.element.setAttribute("aria-rowcount", rows.length + 1);
    this._draw(true);
  }

  select(row) {
    const at = this.rows.indexOf(row);
    if (at < 0) return;
    this.current = at;
    this._intoView();
    this._draw(true);
  }

  _draw(anew = false) {
    const seen = Math.ceil(this.element.clientHeight / ROW_HEIGHT);
    const top = Math.min(Math.floor(this.element.scrollTop / ROW_HEIGHT), this.rows.length - seen); // they may have become few
    const first = Math.max(0, top - SPARE_ROWS);
    const last = Math.min(this.rows.length, first + seen + 2 * SPARE_ROWS);
    if (!anew && first === this._first && last === this._last) return;
    [this._first, this._last] = [first, last];
    while (this._lines.length < last - first) this._lines.push(this._line());
    const drawn = this._lines.slice(0, last - first);
    drawn.forEach((line, at) => this._fill(line, first + at));
    this._above.style.height = `${first * ROW_HEIGHT}px`;
    this._below.style.height = `${(this.rows.length - last) * ROW_HEIGHT}px`;
    if (this._body.childElementCount !== drawn.length + 2) this._body.replaceChildren(this._above, ...drawn, this._below);
    if (this.current >= first && this.current < last) this.element.setAttribute("aria-activedescendant", this._idOf(this.current));
    else this.element.removeAttribute("aria-activedescendant");
  }

  _idOf(at) {
    return `${this._id}-row-${at}`;
  }

  // Lines are used again: new ones for each scroll step would fill the memory faster than it is cleaned.
  _line() {
    const line = el("tr", { role: "row" }, ...this.columns.map((column) => el("td", { role: "gridcell", class: column.number ? "number" : null })));
    line.addEventListener("click", () => {
      this.current = line.at;
      this.open(this.rows[line.at]);
    });
    return line;
  }

  _fill(line, at) {
    line.at = at;
    line.id = this._idOf(at);
    line.setAttribute("aria-rowindex", at + 2);
    line.toggleAttribute("aria-selected", false);
    if (at === this.current) line.setAttribute("aria-selected", "true");
    this.columns.forEach((column, position) => {
      fillCell(line.children[position], column.cell(this.rows[at]));
    });
  }

  _key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.rows.length && event.target === this.element) this.open(this.rows[this.current]);
    else if (event.key in steps) {
      this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + steps[event.key]));
      this._intoView();
      this._draw(true);
    } else return;
    event.preventDefault();
  }

  _intoView() {
    const top = this.current * ROW_HEIGHT;
    const height = this.element.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top > this.element.scrollTop + height) this.element.scrollTop = top - height;
  }
}

// What is the same stays: laying it out again is garbage by the megabyte while scrolling.
function fillCell(place, content) {
  const kept = place.firstChild;
  if (content.kind) {
    if (kept?.textContent !== content.text || kept.className !== `badge ${content.kind}`) place.replaceChildren(badge(content.text, content.kind));
  } else if (typeof content !== "string" || !(kept instanceof Text)) place.replaceChildren(content);
  else if (kept.data !== content) kept.data = content;
}

function spacer() {
  return el("tr", { "aria-hidden": "true", class: "space" }, el("td"));
}
