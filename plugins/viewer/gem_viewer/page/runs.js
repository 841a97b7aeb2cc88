// All runs of the page, and their episodes as rows with columns.

const NAMED_NUMBERS = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };

// A number that JSON may have had to name.
function asNumber(value) {
  return typeof value === "string" ? NAMED_NUMBERS[value] : value;
}

const END_WORDS = {
  terminated: "task ended",
  truncated: "limit reached", // of turns; a response is what gets cut off
  context_full: "context full",
  env_error: "environment failed",
};

class Runs {
  constructor(source) {
    this.source = source;
    this.runs = [];
    this.rows = []; // of all runs: {run, index}
    this._blocks = new Kept(KEPT_SHARDS, (key) => this._block(key));
  }

  async load() {
    for (const one of await this.source.load()) this._add(one);
    while (this.runs.some((run) => run.more)) await this.follow();
  }

  _add(one) {
    const run = { ...one, number: this.runs.length, columns: {} };
    this.runs.push(run);
    this._append(run, one.columns);
  }

  _append(run, columns) {
    for (const [name, column] of Object.entries(columns)) {
      const values = Array.isArray(column) ? column : column.of.map((place) => column.values[place]);
      const own = (run.columns[name] ??= []);
      for (const value of values) own.push(name === "return" ? asNumber(value) : value);
    }
    const before = run.count ?? 0;
    run.count = run.columns.id.length;
    for (let index = before; index < run.count; index++) this.rows.push({ run: run.number, index });
  }

  // Asks the server for what has come since; true if there was something.
  async follow() {
    let changed = false;
    const news = await this.source.news(this.runs.map((run) => run.seen));
    for (const [number, one] of news.entries()) {
      const run = this.runs[number];
      for (const [index, update] of one.changes) run.columns.update[index] = update;
      const grown = one.columns.id.length > 0 || one.changes.length > 0;
      changed ||= grown || one.metrics.step?.length > 0 || ["gaps", "warnings"].some((name) => JSON.stringify(one[name]) !== JSON.stringify(run[name]));
      for (const name of ["gaps", "warnings", "settings", "versions", "kwargs", "seen", "more"]) run[name] = one[name];
      if (grown) this._blocks.forget(`${number}-`);
      this._append(run, one.columns);
      addMetrics(run.metrics, one.metrics);
    }
    return changed;
  }

  value(row, name) {
    const { run, index } = this.rows[row];
    return name === "run" ? this.runs[run].name : this.runs[run].columns[name][index];
  }

  values(name) {
    return [...new Set(this.rows.map((_, row) => this.value(row, name)))].filter((one) => one !== null && one !== "");
  }

  run(row) {
    return this.runs[this.rows[row].run];
  }

  find(runName, id) {
    return this.rows.findIndex((_, row) => this.value(row, "id") === id && this.value(row, "run") === runName);
  }

  // Episodes of one group began alike; another run may have played the same task. Agents of a match began differently.
  groupOf(row) {
    const key = (one) => ["env", "seed", "data_index", "agent"].map((name) => this.value(one, name)).join("|");
    const wanted = key(row);
    return this.rows.map((_, one) => one).filter((one) => key(one) === wanted);
  }

  // The episodes of the other agents in the same match.
  othersOf(row) {
    const match = this.value(row, "match");
    if (match === null) return [];
    return this.rows.map((_, one) => one).filter((one) => one !== row && this.value(one, "match") === match && this.run(one) === this.run(row));
  }

  async _block(key) {
    const [run, block] = key.split("-").map(Number);
    const part = async (number) => inflated(await this.source.part(run, block, number));
    const [details, tokens] = await Promise.all([part(0), part(1)]);
    const { width, episodes } = JSON.parse(new TextDecoder().decode(details));
    const places = unshuffled(tokens, 0, tokens.length / width, width);
    const largest = places.reduce((most, place) => Math.max(most, place), -1);
    const table = largest < 0 ? { ids: [], texts: [] } : await this.source.table(run, largest);
    let start = 0;
    for (const one of episodes) {
      const count = one.sequences.reduce((sum, size) => sum + size, 0);
      one.places = places.subarray(start, start + count);
      one.table = table;
      start += count;
    }
    return episodes;
  }

  // The texts and numbers per turn of an episode, and its tokens as places in a table.
  async details(row) {
    const { run, index } = this.rows[row];
    const { block } = this.source;
    const episodes = await this._blocks.get(`${run}-${Math.floor(index / block)}`);
    return withTexts(episodes[index % block]);
  }

  // The numbers of its sampled tokens, turn by turn, in one of the updates that trained on it; NaN: unknown.
  async numbers(row, update) {
    const { run, index } = this.rows[row];
    const { block } = this.source;
    const packed = await this.source.part(run, Math.floor(index / block), 2 + (index % block));
    return decodedNumbers(packed.size ? await inflated(packed) : new Uint8Array(), await this.details(row), update);
  }
}

// New lines of metrics replace those of the same steps, and the others are sorted in.
function addMetrics(metrics, lines) {
  const steps = (metrics.step ??= []);
  (lines.step ?? []).forEach((step, at) => {
    let place = steps.findLastIndex((one) => one <= step);
    if (steps[place] !== step) {
      place++;
      for (const values of Object.values(metrics)) values.splice(place, 0, null);
    }
    for (const [name, values] of Object.entries(lines)) (metrics[name] ??= new Array(steps.length).fill(null))[place] = values[at];
  });
}

// Puts texts in the place of slices of the tokens' texts, see shards.py.
function withTexts(details) {
  if (details.filled) return details;
  const ends = [0];
  for (const size of details.sequences) ends.push(ends.at(-1) + size);
  const begins = ends.slice();
  for (const turn of details.turns) {
    const [sequence, start, end] = turn.at;
    const base = begins[sequence];
    if (Array.isArray(turn.observation)) turn.observation = textOf(details, ends[sequence], base + start).slice(...turn.observation);
    if (Array.isArray(turn.response)) {
      turn.thoughtEnd = turn.response[0] + (turn.thought ?? 0); // in the texts of the sampled tokens
      turn.response = textOf(details, base + start, base + end).slice(...turn.response);
    }
    const [thought, speech] = turn.said ?? [turn.response.slice(0, turn.thought ?? 0), turn.response.slice(turn.thought ?? 0)];
    turn.speech = speech;
    turn.thoughts = [turn.reasoning ?? "", thought].filter((text) => text !== "");
    ends[sequence] = base + end;
  }
  details.filled = true;
  return details;
}

// The texts of tokens that follow each other; null: unknown. A character whose bytes are in several is that of the last.
function piecesOf({ places, table }, from, to) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const pieces = [];
  const end = () => {
    const rest = decoder.decode();
    if (rest) pieces[pieces.length - 1] += rest;
  };
  for (let at = from; at < to; at++) {
    const text = table.texts[places[at]] ?? null;
    if (Array.isArray(text)) pieces.push(decoder.decode(new Uint8Array(text), { stream: true }));
    else {
      end();
      pieces.push(text);
    }
  }
  end();
  return pieces;
}

function textOf(details, from, to) {
  return piecesOf(details, from, to).join("");
}

const UNIT = 1e-6;
const NOT_FINITE = [Infinity, -Infinity, NaN]; // the codes from FIRST_NOT_FINITE on
const FIRST_NOT_FINITE = 0xfffffffd;

function decodedNumbers(bytes, { turns, updates, sequences }, update) {
  const sizes = turns.map(({ at: [, start, end] }) => (sequences.length ? end - start : 0));
  const starts = [];
  let sampled = 0;
  for (const size of sizes) {
    starts.push(sampled);
    sampled += size;
  }
  let read = 0;
  const next = (length) => {
    const codes = unshuffled(bytes, read, length, 4);
    read += 4 * length;
    return codes;
  };
  const logprobs = Float64Array.from(next(sampled), (code) => decodedNumber(code, 0));
  const spread = (known, base) => {
    const numbers = new Float64Array(sampled).fill(NaN);
    const codes = next(sizes.reduce((sum, size, turn) => sum + (known[turn] ? size : 0), 0));
    let from = 0;
    sizes.forEach((size, turn) => {
      for (let at = starts[turn]; known[turn] && at < starts[turn] + size; at++) {
        numbers[at] = decodedNumber(codes[from++], base ? base[at] : 0);
      }
    });
    return numbers;
  };
  let trainer = spread([], null);
  let entropies = trainer;
  for (const trained of updates.slice(0, update + 1)) {
    trainer = spread(trained.logprobs, logprobs);
    entropies = spread(trained.entropies, null);
  }
  return { logprobs, trainer, entropies, starts };
}

function decodedNumber(code, base) {
  if (code >= FIRST_NOT_FINITE) return NOT_FINITE[code - FIRST_NOT_FINITE];
  const whole = code % 2 ? -(code + 1) / 2 : code / 2;
  return (whole + (Number.isFinite(base) ? Math.round(base / UNIT) : 0)) * UNIT;
}

function unshuffled(bytes, start, length, width) {
  const values = width === 2 ? new Uint16Array(length) : new Uint32Array(length);
  for (let rank = 0; rank < width; rank++) {
    const from = start + rank * length;
    const scale = 256 ** rank;
    for (let at = 0; at < length; at++) values[at] += bytes[from + at] * scale;
  }
  return values;
}
