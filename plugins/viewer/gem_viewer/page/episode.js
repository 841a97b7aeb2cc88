// The view of one episode.

class EpisodeView {
  constructor(app) {
    this.app = app;
    this.runs = app.runs;
    this.mode = "chat";
    this.measure = "logprob";
    this.update = 0; // which of the updates that trained on the episode
    this.element = el("div", { class: "episode" });
  }

  async show(row, turn) {
    const own = (this._showing = {});
    if (row !== this.row) this.update = 0;
    this.row = row;
    const details = await this.runs.details(row);
    const tokens = this.mode === "tokens" && details.sequences.length ? await this.runs.numbers(row, this.update) : null;
    if (own !== this._showing) return; // another episode was opened meanwhile
    this.details = details;
    this.trained = details.updates[this.update] ?? null;
    this.turn = turn === null ? null : Math.max(0, Math.min(details.turns.length - 1, turn));
    const body = tokens ? new TokensView(tokens, details, this.trained, this.measure, (name) => { this.measure = name; }).element : this._chat();
    this.element.replaceChildren(this._head(), el("div", { class: "columns" }, body, this._side()));
    this._drawChart();
    if (!document.querySelector("header").contains(document.activeElement)) this.element.querySelector("h1").focus({ preventScroll: true });
    if (this.turn !== null) this._toTurn(this.turn);
    else window.scrollTo(0, 0);
  }

  _value(name) {
    return this.runs.value(this.row, name);
  }

  _head() {
    const group = this.runs.groupOf(this.row);
    const { rows } = this.app.selection;
    const at = rows.indexOf(this.row);
    const button = (text, title, act, off) => el("button", { type: "button", title, disabled: off, onclick: act }, text);
    const modes = [["chat", "Conversation"], ["tokens", "Tokens"]].map(([mode, title]) =>
      el("button", { type: "button", "aria-pressed": String(this.mode === mode), disabled: mode === "tokens" && !this.details.sequences.length,
        title: mode === "tokens" && !this.details.sequences.length ? "No tokens are known of this episode" : "Key t", onclick: () => this.setMode(mode) }, title));
    return el("div", { class: "episode-head" },
      el("h1", { tabindex: -1 }, visible(this._value("env")), " ", el("span", { class: "faint" }, visible(this._value("id")))),
      el("p", { class: "ending" }, ...this._ending()),
      el("div", { class: "bar-of-buttons" },
        el("span", { class: "segmented", role: "group", "aria-label": "Show" }, ...modes),
        button("← Previous", "Key k", () => this.step(-1), at <= 0),
        el("span", { class: "faint" }, at < 0 ? "not in the selection" : `${integer(at + 1)} of ${integer(rows.length)}`),
        button("Next →", "Key j", () => this.step(1), at < 0 || at >= rows.length - 1),
        this._updates(),
        button(`Group of ${group.length}`, "Key g", () => this.app.openGroup(this.row)),
        button("Copy link", "A permanent link to this episode and turn", (event) => copy(location.href.split("#")[0] + this.address(), event.target))));
  }

  // Which update's numbers are shown, where several trained on it.
  _updates() {
    const { updates } = this.details;
    if (updates.length < 2) return null;
    const options = updates.map(({ update }, at) => [String(at), String(update)]);
    const field = select(options, String(this.update), async (at) => {
      this.update = Number(at);
      await this.show(this.row, this.turn);
      this.element.querySelector(".update-choice")?.focus({ preventScroll: true });
    });
    field.className = "update-choice";
    return labelled("Numbers of update", field);
  }

  address() {
    return episodeAddress(this.runs, this.row, this.turn);
  }

  _ending() {
    const turns = this.details.turns.length;
    const after = `after ${turns} ${turns === 1 ? "turn" : "turns"}`;
    const stop = this._value("stop");
    const solved = Boolean(this._value("success"));
    const words = {
      terminated: solved ? `The task ended ${after}: it was solved.` : `The task ended ${after}, not solved.`,
      truncated: `The environment cut the episode off ${after}${solved ? "; the task was solved" : ""}.`,
      context_full: `The next prompt and response might not have fitted the context ${after}.`,
      env_error: `The environment failed ${after}.`,
    };
    const kind = stop === "env_error" ? "bad" : solved ? "good" : "quiet";
    return [badge(solved ? "solved" : stop === "env_error" ? "failed" : "not solved", kind), ` ${words[stop] ?? stop}`];
  }

  _chat() {
    const list = el("ol", { class: "chat", "aria-label": "Conversation" });
    const { turns, final, error, unreadable } = this.details;
    const shown = (at) => this.details.images.filter(([turn]) => turn === at).map(([, uri]) => uri);
    if (unreadable) return el("p", { class: "failure", role: "alert" }, visible(unreadableText(this.details)));
    let result = null; // what a tool answered is the next observation
    for (const [at, turn] of turns.entries()) {
      list.append(el("li", { id: `turn-${at}`, class: "turn", tabindex: -1 }, this._turnHead(at, turn),
        message("environment", result ? "tool's answer" : "observation", turn.observation, { folded: result, images: shown(at) }),
        message("policy", turn.tool ? "response with a tool call" : "response", turn.speech, { folded: turn.tool ? `Tool call, ${turn.tool}` : null, notes: notesOf(turn), thoughts: turn.thoughts }),
        turn.info ? el("details", { class: "info" }, el("summary", {}, "What the environment reported"), textBlock(turn.info, { class: "mono" })) : null));
      result = turn.tool ? (turn.tool === "failed" ? "The tool failed" : "The tool answered") : null;
    }
    if (!turns.length) list.append(el("li", { class: "faint" }, "The episode has no turns."));
    const texts = turns.some((turn) => turn.observation || turn.response || turn.thoughts.length);
    if (turns.length && !texts) list.prepend(el("li", { class: "faint" }, "This run recorded no texts (record=summary)."));
    if (final || shown(turns.length).length) list.append(el("li", { class: "turn" }, message("environment", "final observation", final, { folded: result, images: shown(turns.length) })));
    if (error) list.append(el("li", { class: "turn" }, el("h3", { class: "bad-text" }, "The environment's error"), textBlock(error, { class: "mono error" })));
    return el("section", {}, el("div", { class: "fold-buttons" },
      el("button", { type: "button", class: "plain", onclick: () => this.fold(true), title: "Key x" }, "Unfold all"),
      el("button", { type: "button", class: "plain", onclick: () => this.fold(false) }, "Fold all")), list);
  }

  fold(open) {
    for (const one of this.element.querySelectorAll("details")) one.open = open;
  }

  _turnHead(at, turn) {
    const { trained } = this;
    const facts = [`reward ${number(asNumber(turn.reward))}`];
    if (trained) {
      if (trained.returns.length) facts.push(`return ${number(asNumber(trained.returns[at]))}`);
      facts.push(`advantage ${number(asNumber(trained.advantages[at]))}`);
    }
    const tokens = turn.at[2] - turn.at[1];
    if (tokens) facts.push(`${tokens} tokens`);
    return el("h2", { class: "turn-head" }, el("a", { href: episodeAddress(this.runs, this.row, at), title: "A link to this turn" }, `Turn ${at + 1}`),
      el("span", { class: "facts" }, facts.join("  ·  ")));
  }

  _side() {
    const facts = [["Run", "run"], ["Agent", "agent"], ["Split", "split"], ["Update", "update"], ["Task", "task_id"], ["Row of the data", "data_index"], ["Seed", "seed"],
      ["Return", "return"], ["Turns", "turns"], ["Sampled tokens", "tokens"], ["Invalid actions", "invalid"], ["Truncated responses", "truncated"],
      ["Tool calls", "tool_calls"]].map(([title, name]) => [title, name === "update" ? this.details.updates.map((one) => one.update).join(", ") : this._value(name)]);
    facts.push(["Offered by", this.details.provenance]);
    const shown = facts.filter(([, value]) => value !== null && value !== "");
    const list = el("dl", {}, ...shown.flatMap(([title, value]) => [el("dt", {}, title), el("dd", {}, typeof value === "number" ? number(value) : visible(value))]));
    for (const other of this.runs.othersOf(this.row)) {
      list.append(el("dt", {}, "Same match"), el("dd", {}, el("a", { href: episodeAddress(this.runs, other, null) }, visible(this.runs.value(other, "agent")))));
    }
    const play = playLine(this.runs.run(this.row), ...["env", "env_id", "seed", "data_index"].map((name) => this._value(name)));
    this.chart = el("div", { class: "turn-chart", role: "img", "aria-label": "Rewards, returns and advantages per turn; the numbers are beside each turn" });
    return el("aside", {}, this.details.turns.length ? this.chart : null, list,
      el("h3", {}, "Play the same seed and row"), el("div", { class: "copy-line" }, el("code", {}, visible(play)),
        el("button", { type: "button", title: "Key c", class: "copy", onclick: (event) => copy(play, event.target) }, "Copy")));
  }

  _drawChart() {
    const { trained, details: { turns } } = this;
    if (!turns.length) return;
    const rewards = turns.map((turn) => asNumber(turn.reward));
    const returns = trained?.returns.length ? trained.returns.map(asNumber) : toGo(rewards);
    drawTurns(this.chart, { rewards, returns, advantages: trained?.advantages.map(asNumber), ends: Boolean(trained?.returns.length) }, (turn) => this.toTurn(turn));
  }

  setMode(mode) {
    if (mode === "tokens" && !this.details.sequences.length) return;
    this.mode = mode;
    this.show(this.row, this.turn);
  }

  step(by) {
    const { rows } = this.app.selection;
    const next = rows[rows.indexOf(this.row) + by];
    if (rows.includes(this.row) && next !== undefined) this.app.openEpisode(next);
  }

  stepTurn(by) {
    if (this.details.turns.length) this.toTurn(Math.max(0, Math.min(this.details.turns.length - 1, (this.turn ?? -1) + by)));
  }

  toTurn(turn) {
    this.turn = turn;
    this.app.remember(this.address().slice(1));
    this._toTurn(turn);
  }

  _toTurn(turn) {
    const found = document.getElementById(this.mode === "chat" ? `turn-${turn}` : `tokens-${turn}`);
    for (const one of this.element.querySelectorAll(".current")) one.classList.remove("current");
    found?.classList.add("current");
    found?.scrollIntoView({ block: "start" });
    if (this.mode === "chat") found?.focus({ preventScroll: true });
  }

  copyPlay() {
    this.element.querySelector("button.copy")?.click();
  }
}

function unreadableText(details) {
  return `This episode cannot be read: ${details.unreadable}`;
}

function episodeAddress(runs, row, turn) {
  const parts = ["episode", runs.value(row, "run"), runs.value(row, "id"), ...(turn === null ? [] : [String(turn + 1)])];
  return `#${parts.map(encodeURIComponent).join("/")}`;
}

// What was said by one side in a turn, what it thought before, and the images that it showed.
function message(side, title, text, { folded = null, notes = [], images = [], thoughts = [] } = {}) {
  const name = el("span", { class: "who" }, `${side}: ${title}`, ...notes.flatMap((note) => [" ", badge(note, "warn")]));
  const words = text === "" ? el("p", { class: "faint" }, "(empty)") : textBlock(text);
  const shown = images.map((src, at) => el("img", { class: "image", src, alt: `image ${at + 1} of the observation` }));
  const body = shown.length ? el("div", {}, ...shown, words) : words;
  const before = thoughts.map(thoughtBlock);
  if (!folded) return el("div", { class: `message ${side}` }, name, ...before, body);
  return el("div", { class: `message ${side} folded` }, name, ...before, el("details", {}, el("summary", {}, `${folded}: `, el("span", { class: "faint" }, visible(preview(text)))), body));
}

// A thought: folded and dimmed, as it is no part of the action.
function thoughtBlock(text) {
  return el("details", { class: "thought" }, el("summary", {}, "Thought: ", el("span", { class: "faint" }, visible(preview(text)))), textBlock(text));
}

function notesOf(turn) {
  const notes = [];
  if (turn.thoughts.length && turn.speech.trim() === "") notes.push("only thought");
  if (turn.invalid) notes.push("invalid action");
  if (turn.truncated) notes.push("cut off by the token limit");
  if (turn.action !== undefined) notes.push(turn.action === "" ? "the environment got an empty action" : `the environment got: ${preview(turn.action, 60)}`);
  return notes;
}

function toGo(rewards) {
  const returns = [...rewards];
  for (let at = returns.length - 2; at >= 0; at--) returns[at] += returns[at + 1];
  return returns;
}

// A line for a POSIX shell. An evaluation has arguments for each of its entries.
function playLine(run, entry, id, seed, dataIndex) {
  const words = ["gem-core", "play", id, "--seed", seed];
  if (dataIndex !== null) words.push("--data-index", String(dataIndex));
  for (const [name, value] of Object.entries(run.kwargs[entry] ?? run.kwargs[""] ?? {})) words.push("--set", `${name}=${value}`);
  return words.map((word) => (/^[\w:.,=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
