// Which episodes are selected, and in which order. The state is in the address, so that a link keeps it.

const RANGES = { update: "Update", return: "Return", turns: "Turns", tokens: "Tokens" };
const CHOICES = { run: "Run", env: "Environment", agent: "Agent", split: "Split", stop: "Ended by" };

const NUMBER = "([-−]?\\d+(?:\\.\\d+)?(?:e[-+−]?\\d+)?)";
const RANGE = new RegExp(`^\\s*${NUMBER}?\\s*(?:(\\.\\.|–|to|-)\\s*${NUMBER}?)?\\s*$`, "i");

// "3..7", "3..", "..7", "3-7" or "5"; an ASCII or a true minus sign may begin a number.
function range(text) {
  const found = RANGE.exec(text ?? "");
  if (!found || (found[1] === undefined && found[3] === undefined)) return null;
  const [low, high] = [found[1], found[3]].map((one) => (one === undefined ? null : Number(one.replaceAll("−", "-"))));
  return { low: low ?? -Infinity, high: found[2] ? (high ?? Infinity) : low };
}

class Selection {
  constructor(runs) {
    this.runs = runs;
    this.state = new URLSearchParams();
    this.rows = [];
    this.looked = null; // the text that was searched, the rows that were looked at, and those that have it
    this._search = 0;
  }

  get(name) {
    return this.state.get(name) ?? "";
  }

  set(name, value) {
    if (value === "") this.state.delete(name);
    else this.state.set(name, value);
  }

  // Rows that pass the filters, without the search in texts.
  _filtered() {
    const tests = [];
    const column = (name) => (row) => this.runs.value(row, name);
    for (const name of Object.keys(CHOICES)) {
      const wanted = this.get(name);
      if (wanted) tests.push((row) => column(name)(row) === wanted);
    }
    for (const name of Object.keys(RANGES)) {
      const wanted = range(this.get(name));
      const value = column(name);
      if (wanted) tests.push((row) => value(row) !== null && value(row) >= wanted.low && value(row) <= wanted.high);
    }
    const outcome = this.get("outcome");
    if (outcome === "failed") tests.push((row) => column("stop")(row) === "env_error");
    else if (outcome) tests.push((row) => Boolean(column("success")(row)) === (outcome === "solved"));
    const error = this.get("error").toLowerCase();
    if (error) tests.push((row) => (column("error")(row) ?? "").toLowerCase().includes(error));
    const special = this.get("with");
    if (special) tests.push((row) => column(special)(row) > 0);
    return this.runs.rows.map((_, row) => row).filter((row) => tests.every((test) => test(row)));
  }

  apply() {
    let rows = this._filtered();
    if (this.looked) rows = rows.filter((row) => this.looked.found.has(row));
    const name = this.get("sort");
    if (COLUMNS.some((column) => column.name === name)) rows = this._sorted(rows, name, this.get("order") === "down" ? -1 : 1);
    this.rows = rows;
  }

  _sorted(rows, name, direction) {
    const key = (value) => (name === "seed" ? BigInt(value) : value);
    const keys = new Map(rows.map((row) => [row, key(this.runs.value(row, name))]));
    const missing = (value) => value === null || value === "" || value !== value;
    return rows.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return a < b ? -direction : a > b ? direction : one - other;
    });
  }

  // Looks for the text in the observations and responses that were not looked at before, shard by shard; tells how far
  // it is. False: another search has begun. What was found stays if it fails.
  async search(tell) {
    const own = ++this._search;
    const wanted = this.get("text").toLowerCase();
    if (!wanted) this.looked = null;
    else if (this.looked?.wanted !== wanted) this.looked = { wanted, rows: new Set(), found: new Set(), unreadable: new Set() };
    const { looked } = this;
    for (let rows; looked && (rows = this._filtered().filter((row) => !looked.rows.has(row))).length; ) {
      let pause = performance.now() + 30;
      for (const [done, row] of rows.entries()) {
        const details = await this.runs.details(row).catch((error) => ({ failure: error }));
        if (own !== this._search) return false;
        if (details.failure) throw details.failure;
        looked.rows.add(row);
        if (details.unreadable) looked.unreadable.add(row);
        else if (hasText(details, wanted)) looked.found.add(row);
        if (performance.now() > pause) {
          tell(`Searching: ${percent(done / rows.length)}, ${integer(looked.found.size)} found`);
          await new Promise((resolve) => setTimeout(resolve));
          pause = performance.now() + 30;
        }
      }
    }
    return own === this._search;
  }
}

function hasText(details, wanted) {
  const has = (text) => text.toLowerCase().includes(wanted);
  return details.turns.some((turn) => has(turn.observation) || has(turn.response) || has(turn.reasoning ?? "")) || has(details.final);
}
