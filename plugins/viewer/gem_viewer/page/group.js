// The view of a group: episodes of one task beside each other, turn by turn.

class GroupView {
  constructor(app) {
    this.app = app;
    this.runs = app.runs;
    this.element = el("div", { class: "group" });
  }

  async show(row) {
    const own = (this._showing = {});
    const rows = this.runs.groupOf(row);
    const details = [];
    for (const one of rows) details.push(await this.runs.details(one));
    if (own !== this._showing) return;
    const turns = Math.max(0, ...details.map((one) => one.turns.length));
    const branches = branchesOf(details, turns);
    const lines = [];
    for (let turn = 0; turn < turns; turn++) lines.push(...this._turn(rows, details, branches, turn));
    const heads = rows.map((one, at) => el("th", { scope: "col" }, this._head(one, at, details[at])));
    const value = (name) => this.runs.value(row, name);
    const agent = value("agent") === null ? "" : `, ${plain(value("agent"))}`;
    const data = value("data_index") === null ? "" : `, row ${value("data_index")}`;
    const texts = details.some((one) => one.turns.some((own) => own.observation || own.response || own.thoughts.length));
    const before = document.activeElement;
    const reading = this.element.querySelector(".side-by-side")?.contains(before);
    this.element.replaceChildren(el("h1", { tabindex: -1 }, visible(value("env")), el("span", { class: "faint" }, ` seed ${value("seed")}${data}${agent}`)),
      el("p", { class: "faint" }, this._said(rows, branches, turns, texts)),
      el("div", { class: "side-by-side", tabindex: 0, role: "region", "aria-label": "Episodes of the group" },
        el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Turn"), ...heads)), el("tbody", {}, ...lines))));
    if (!document.querySelector("header").contains(before)) this.element.querySelector(reading ? ".side-by-side" : "h1").focus({ preventScroll: true });
  }

  _said(rows, branches, turns, texts) {
    const solved = rows.filter((row) => this.runs.value(row, "success")).length;
    const parted = branches.findIndex((line) => new Set(line.filter((one) => one !== null)).size > 1);
    const where = rows.length < 2 ? "The only episode of this task." : parted < 0 ? "All respond alike." : `They part in turn ${parted + 1}.`;
    const counted = `${rows.length} ${rows.length === 1 ? "episode" : "episodes"}, ${solved} solved, up to ${turns} turns.`;
    if (turns && !texts) return `${counted} This run recorded no texts (record=summary): who said the same is not known.`;
    return `${counted} ${where} Letters mark who has said the same so far.`;
  }

  _head(row, at, details) {
    const value = (name) => this.runs.value(row, name);
    const several = this.runs.runs.length > 1 ? [el("div", { class: "faint" }, visible(value("run")))] : [];
    const update = value("update") === null ? [] : [`update ${value("update")}`];
    return el("div", { class: "group-head" }, ...several, el("a", { href: episodeAddress(this.runs, row, null) }, `Episode ${at + 1}`), " ",
      badge(value("success") ? "solved" : (END_WORDS[value("stop")] ?? value("stop")), value("success") ? "good" : value("stop") === "env_error" ? "bad" : "quiet"),
      el("div", { class: "faint" }, [`return ${number(value("return"))}`, `${details.turns.length} turns`, ...update].join(" · ")),
      ...(details.unreadable ? [el("p", { class: "failure" }, visible(unreadableText(details)))] : []));
  }

  _turn(rows, details, branches, turn) {
    const kinds = new Set(branches[turn].filter((one) => one !== null)).size;
    const before = turn ? new Set(branches[turn - 1].filter((one, at) => one !== null && branches[turn][at] !== null)).size : 1;
    const cells = rows.map((row, at) => {
      const one = details[at].turns[turn];
      if (!one) return el("td", { class: "over" });
      const trained = details[at].updates[0];
      const advantage = trained ? ` · advantage ${number(asNumber(trained.advantages[turn]))}` : "";
      return el("td", { class: `branch-${branches[turn][at] % 8}` },
        el("div", { class: "cell-head" }, el("span", { class: "branch" }, letter(branches[turn][at])),
          el("a", { href: episodeAddress(this.runs, row, turn) }, `reward ${number(asNumber(one.reward))}${advantage}`)),
        el("details", { class: "observation" }, el("summary", {}, visible(preview(one.observation, 60) || "(empty)")), textBlock(one.observation)),
        ...one.thoughts.map(thoughtBlock),
        one.speech === "" ? el("p", { class: "faint" }, "(empty)") : textBlock(one.speech, { class: "said" }));
    });
    const line = el("tr", {}, el("th", { scope: "row" }, String(turn + 1)), ...cells);
    if (kinds <= before) return [line];
    return [el("tr", { class: "parting" }, el("td", {}), el("td", { colspan: rows.length }, `They part: ${kinds} ways from here`)), line];
  }

  // The group before or after this one in the selection.
  step(row, by) {
    const { rows } = this.app.selection;
    const own = new Set(this.runs.groupOf(row));
    const at = rows.indexOf(row);
    for (let next = at + by; at >= 0 && next >= 0 && next < rows.length; next += by) {
      if (!own.has(rows[next])) return this.app.openGroup(rows[next]);
    }
  }
}

// By turn and episode the number of its branch; null after the end. Episodes are on one branch as long as they were
// shown the same and have said the same, whatever they thought. Where they part, the first one keeps the number.
function branchesOf(details, turns) {
  let count = 1;
  let before = details.map(() => 0);
  const branches = [];
  for (let turn = 0; turn < turns; turn++) {
    const numbers = new Map();
    const kept = new Set();
    const line = details.map((one, at) => {
      const own = one.turns[turn];
      if (!own) return null;
      const key = JSON.stringify([before[at], own.observation, own.speech]);
      if (!numbers.has(key)) {
        numbers.set(key, kept.has(before[at]) ? count++ : before[at]);
        kept.add(before[at]);
      }
      return numbers.get(key);
    });
    before = line.map((branch, at) => branch ?? before[at]);
    branches.push(line);
  }
  return branches;
}

function letter(branch) {
  return branch < 26 ? String.fromCharCode(65 + branch) : String(branch + 1);
}
