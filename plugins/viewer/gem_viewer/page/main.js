// Which view is shown: the address decides, so that a link opens what its sender saw.

const FOLLOW_SECONDS = 2;

const KEYS = [
  ["1 2 3 4", "run, episodes, group, episode"],
  ["j k", "next and previous episode or group of the selection"],
  ["n p", "next and previous turn"],
  ["t", "conversation or tokens"],
  ["← →", "within the tokens: from token to token"],
  ["x", "unfold all of the conversation"],
  ["g", "the group of the episode"],
  ["c", "copy the line that plays the seed again"],
  ["/", "search in texts"],
  ["u", "back to the table"],
  ["?", "these keys"],
];

class App {
  constructor(runs) {
    this.runs = runs;
    this.selection = new Selection(runs);
    this.selection.apply();
    this.row = runs.rows.length ? 0 : null;
    this.main = document.getElementById("view");
    this.views = { run: new RunView(this), episodes: new EpisodesView(this), group: new GroupView(this), episode: new EpisodeView(this) };
  }

  start() {
    window.addEventListener("hashchange", () => this.open());
    document.addEventListener("keydown", (event) => this._key(event));
    const dialog = document.getElementById("keys");
    dialog.append(el("h2", {}, "Keys"), el("dl", {}, ...KEYS.flatMap(([keys, what]) => [el("dt", {}, keys), el("dd", {}, what)])),
      el("form", { method: "dialog" }, el("button", {}, "Close")));
    document.getElementById("help").addEventListener("click", () => dialog.showModal());
    document.getElementById("theme").addEventListener("click", () => this._changeTheme());
    this.open();
    if (this.runs.source.news) this._follow();
  }

  // Changes the address without opening anything.
  remember(address) {
    history.replaceState(null, "", `#${address.replace(/\?$/, "")}`);
  }

  openEpisode(row, turn = null) {
    location.hash = episodeAddress(this.runs, row, turn);
  }

  openGroup(row) {
    location.hash = episodeAddress(this.runs, row, null).replace("#episode", "#group");
  }

  async open() {
    const [path, query] = location.hash.slice(1).split("?");
    const [name, runName, id, turn] = path.split("/").map(decoded);
    this.name = name in this.views ? name : "run";
    if (runName !== undefined) this.row = this.runs.find(runName, id ?? "");
    for (const tab of document.querySelectorAll("#tabs a")) {
      if (tab.dataset.view === this.name) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    const view = this.views[this.name];
    const needsRow = this.name === "episode" || this.name === "group";
    if (needsRow && (this.row === null || this.row < 0)) return this._say(this.row === null ? "There are no episodes." : `There is no episode ${id} in ${runName}.`);
    if (this.main.firstChild !== view.element) this.main.replaceChildren(view.element);
    document.title = plain(`${this.name} · ${this.runs.runs.map((run) => run.name).join(", ")}`);
    try {
      if (needsRow) await view.show(this.row, turn === undefined ? null : Number(turn) - 1 || 0);
      else await view.show(query ?? "");
      if (this.name === "episodes" && this.row !== null) view.table.select(this.row);
    } catch (error) {
      this._say(`This cannot be shown: ${error.message}`);
    }
  }

  _say(text) {
    this.row = this.row !== null && this.row < 0 ? (this.runs.rows.length ? 0 : null) : this.row;
    this.main.replaceChildren(el("p", { class: "failure", role: "alert" }, visible(text)));
  }

  _key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
    const { episode, group, episodes } = this.views;
    const inEpisode = this.name === "episode" && episode.details;
    const step = (by) => (this.name === "group" ? group.step(this.row, by) : inEpisode && episode.step(by));
    const acts = {
      1: () => (location.hash = "#run"),
      2: () => (location.hash = this._table()),
      3: () => this.row !== null && this.openGroup(this.row),
      4: () => this.row !== null && this.openEpisode(this.row),
      j: () => step(1),
      k: () => step(-1),
      n: () => inEpisode && episode.stepTurn(1),
      p: () => inEpisode && episode.stepTurn(-1),
      t: () => inEpisode && episode.setMode(episode.mode === "chat" ? "tokens" : "chat"),
      x: () => inEpisode && episode.fold(true),
      g: () => this.row !== null && this.openGroup(this.row),
      c: () => inEpisode && episode.copyPlay(),
      u: () => (location.hash = this._table()),
      "/": () => { location.hash = this._table(); setTimeout(() => episodes.form.elements.text.focus()); },
      "?": () => document.getElementById("keys").showModal(),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  _table() {
    return `#episodes?${this.selection.state}`.replace(/\?$/, "");
  }

  _changeTheme() {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    if (this.name === "run" || this.name === "episode") this.open(); // charts have the colours of the theme
  }

  async _follow() {
    const status = document.getElementById("status");
    try {
      if (await this.runs.follow()) {
        const view = this.views[this.name];
        if (view.refresh) view.refresh();
        if (this.row === null && this.runs.rows.length) this.row = 0;
      }
      status.textContent = `following, ${integer(this.runs.rows.length)} episodes`;
    } catch (error) {
      status.textContent = "the server does not answer";
    }
    setTimeout(() => this._follow(), FOLLOW_SECONDS * 1000);
  }
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function begin() {
  const runs = new Runs(openSource());
  await runs.load();
  const app = new App(runs);
  app.start();
  document.documentElement.dataset.ready = "true";
}

begin().catch((error) => {
  document.getElementById("view").replaceChildren(el("p", { class: "failure", role: "alert" }, visible(`This page cannot be shown: ${error.message}`)));
});
