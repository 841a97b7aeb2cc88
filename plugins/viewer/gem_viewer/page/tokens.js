// The token sequences of an episode as the policy saw them, coloured by a measure.

// value(tokens, at, turn, trained): of the sampled token `at`; shade(value): from -1 to 1, where negative is the other colour.
const MEASURES = {
  logprob: { title: "Log-probability (sampler)", value: (t, at) => t.logprobs[at], shade: (v) => Math.min(1, -v / 4), ends: ["0", "−4 and less"] },
  trainer: { title: "Log-probability (trainer)", value: (t, at) => t.trainer[at], shade: (v) => Math.min(1, -v / 4), ends: ["0", "−4 and less"] },
  ratio: { title: "Ratio, exp(trainer − sampler)", value: (t, at) => Math.exp(t.trainer[at] - t.logprobs[at]),
    shade: (v) => clamp(Math.log(v) / Math.log(1.25)), ends: ["0.8 and less", "1.25 and more"], signed: true },
  entropy: { title: "Entropy (trainer)", value: (t, at) => t.entropies[at], shade: (v) => Math.min(1, v / 3), ends: ["0", "3 nats and more"] },
  advantage: { title: "Advantage of the turn", value: (t, at, turn, trained) => asNumber(trained?.advantages[turn] ?? NaN),
    shade: (v, scale) => clamp(v / scale), ends: ["negative", "positive"], signed: true },
  mask: { title: "Sampled or not", value: () => 1, shade: () => 0.5, ends: null },
};

const LEVELS = 12; // of a colour, as in style.css
const TOKENS_AT_ONCE = 30000;

function clamp(value) {
  return Math.max(-1, Math.min(1, value));
}

// The measures that an episode has numbers for.
function knownMeasures(tokens, trained) {
  const some = (values) => values.some((value) => !Number.isNaN(value));
  const known = { logprob: some(tokens.logprobs), trainer: some(tokens.trainer), entropy: some(tokens.entropies),
    ratio: some(tokens.trainer) && some(tokens.logprobs), advantage: Boolean(trained), mask: true };
  return Object.keys(MEASURES).filter((name) => known[name]);
}

class TokensView {
  constructor(tokens, details, trained, measure, onmeasure) {
    this.tokens = tokens;
    this.details = details;
    this.trained = trained;
    this.known = knownMeasures(tokens, trained);
    this.measure = this.known.includes(measure) ? measure : this.known[0];
    this.onmeasure = onmeasure;
    this.scale = Math.max(1e-9, ...(trained?.advantages ?? []).map((one) => Math.abs(asNumber(one))).filter(Number.isFinite));
    this.spans = [];
    this.readout = el("output", { class: "readout", "aria-live": "polite" }, "Point at a token, or move with the arrow keys.");
    this.body = el("div", { class: "token-body", tabindex: 0, role: "region", "aria-label": "Tokens, left and right arrow keys",
      onmouseover: (event) => this._pointed(event.target), onclick: (event) => this._pointed(event.target),
      onkeydown: (event) => this._key(event) });
    this.head = el("div", { class: "token-head" });
    this.element = el("section", { class: "tokens", "aria-label": "Tokens" }, this.head, this.body);
    this._fillHead();
    this._fillBody();
  }

  _fillHead() {
    const choose = (name) => { this.measure = name; this._fillHead(); this._colour(); this.onmeasure(name); };
    const { ends, signed } = MEASURES[this.measure];
    const scale = ends ? el("span", { class: "scale" }, ends[0], el("span", { class: `ramp ${signed ? "signed" : ""}` }), ends[1]) : null;
    const options = this.known.map((name) => [name, MEASURES[name].title]);
    this.head.replaceChildren(labelled("Colour", select(options, this.measure, choose)), scale ?? "",
      el("span", { class: "scale" }, el("span", { class: "key prompt-token" }, "prompt"), el("span", { class: "key" }, "sampled")), this.readout);
  }

  _fillBody() {
    const { turns, sequences } = this.details;
    const parts = [];
    let offset = 0;
    for (const [number, length] of sequences.entries()) {
      const own = turns.map((turn, at) => ({ at, start: turn.at[1], end: turn.at[2], sequence: turn.at[0] })).filter((turn) => turn.sequence === number);
      if (sequences.length > 1) parts.push(() => el("h3", {}, `Sequence ${number + 1} of ${sequences.length}`));
      let from = 0;
      for (const turn of own) {
        const [begin, base] = [from, offset];
        parts.push(() => this._turn(turn, base, begin));
        from = turn.end;
      }
      const [begin, base] = [from, offset];
      if (from < length) parts.push(() => el("div", { class: "token-turn" }, el("h4", {}, "After the last response"), this._spans(base, begin, length, null)));
      offset += length;
    }
    this._draw(parts);
  }

  // As many parts as a browser draws at once; the rest when asked.
  _draw(parts) {
    const until = this.spans.length + TOKENS_AT_ONCE;
    let done = 0;
    while (done < parts.length && this.spans.length < until) this.body.append(parts[done++]());
    const rest = parts.slice(done);
    if (!rest.length) return;
    const more = el("button", { type: "button", class: "more" }, `Show more: ${rest.length} of ${parts.length} parts are left`);
    more.addEventListener("click", () => { more.remove(); this._draw(rest); });
    this.body.append(more);
  }

  _turn(turn, base, from) {
    const part = el("div", { class: "token-turn", id: `tokens-${turn.at}` }, el("h4", {}, `Turn ${turn.at + 1}`));
    part.append(this._spans(base, from, turn.start, null), this._spans(base, turn.start, turn.end, turn.at));
    return part;
  }

  _spans(base, from, to, turn) {
    const line = el("div", { class: turn === null ? "prompt-tokens" : "sampled-tokens", dir: "ltr" });
    const { places, table } = this.details;
    const { starts } = this.tokens;
    const thoughtEnd = turn === null || !this.details.turns[turn].thought ? 0 : (this.details.turns[turn].thoughtEnd ?? 0);
    const pieces = piecesOf(this.details, base + from, base + to);
    let characters = 0;
    for (let at = from; at < to; at++) {
      const place = places[base + at];
      const text = pieces[at - from];
      const part = text === "" && Array.isArray(table.texts[place]); // of a character that a later token completes
      const span = document.createElement("span");
      characters += text?.length ?? 0;
      if (characters + (part ? 1 : 0) <= thoughtEnd) span.dataset.thought = "";
      if (text === null) span.textContent = `⟨${table.ids[place]}⟩`;
      else if (part) span.dataset.part = "";
      else if (text === "") span.textContent = "∅";
      else if (HIDDEN.test(text)) span.append(visible(text));
      else span.textContent = text.includes("\n") ? text.replaceAll("\n", "↵\n") : text;
      span.token = { place, at, turn, text, sampled: turn === null ? null : starts[turn] + at - from };
      if (turn === null) span.className = "prompt-token";
      else span.className = this._class(span.token);
      this.spans.push(span);
      line.append(span);
    }
    return line;
  }

  _class({ sampled, turn }) {
    const { value, shade } = MEASURES[this.measure];
    const found = value(this.tokens, sampled, turn, this.trained);
    if (Number.isNaN(found)) return "unknown";
    const level = Math.round(shade(found, this.scale) * LEVELS) || 0;
    return level < 0 ? `cold-${-level}` : `hot-${level}`;
  }

  _colour() {
    for (const span of this.spans) if (span.token.turn !== null) span.className = this._class(span.token);
  }

  _pointed(target) {
    const span = target.token ? target : target.parentElement;
    if (span?.token) this._tell(span);
  }

  _tell(span) {
    this.current?.classList.remove("pointed");
    this.current = span;
    span.classList.add("pointed");
    const { place, at, turn, sampled, text } = span.token;
    const { table } = this.details;
    const facts = [`id ${table.ids[place]}`, `position ${at}`];
    const bytes = table.texts[place];
    if (Array.isArray(bytes)) facts.push(`bytes ${bytes.map((one) => one.toString(16).padStart(2, "0")).join(" ")}`);
    if (turn === null) facts.push("prompt, not sampled");
    else {
      facts.push(`turn ${turn + 1}`);
      for (const name of this.known) {
        if (name !== "mask") facts.push(`${SHORT[name]} ${number(MEASURES[name].value(this.tokens, sampled, turn, this.trained), 6)}`);
      }
    }
    this.readout.replaceChildren(el("code", {}, visible(JSON.stringify(text))), ` ${facts.join("  ·  ")}`);
  }

  _key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.spans.length) return;
    const now = this.current ? this.spans.indexOf(this.current) : -1;
    const next = this.spans[Math.max(0, Math.min(this.spans.length - 1, now + step))];
    this._tell(next);
    next.scrollIntoView({ block: "nearest" });
    event.preventDefault();
  }
}

const SHORT = { logprob: "sampler", trainer: "trainer", ratio: "ratio", entropy: "entropy", advantage: "advantage" };
