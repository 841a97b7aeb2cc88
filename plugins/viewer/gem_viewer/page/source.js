// Where the parts of shards come from: this page, files beside it, or the server. See shards.py.

const KEPT_SHARDS = 6;

function embedded(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

const fromBase64 = Uint8Array.fromBase64
  ? (text) => Uint8Array.fromBase64(text)
  : (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The newest few results of an asynchronous function.
class Kept {
  constructor(count, make) {
    this._count = count;
    this._make = make;
    this._found = new Map();
  }

  get(key) {
    const found = this._found.get(key) ?? this._make(key);
    this._found.delete(key);
    this._found.set(key, found);
    found.catch(() => this._found.delete(key));
    if (this._found.size > this._count) this._found.delete(this._found.keys().next().value);
    return found;
  }

  forget(start) {
    for (const key of [...this._found.keys()]) if (key.startsWith(start)) this._found.delete(key);
  }
}

// Shards in base64, of which only the wanted part is decoded.
class ShardSource {
  constructor(boot, base64Of) {
    this.block = boot.block;
    this.base64Of = base64Of;
    this.runs = embedded("runs");
    this.tables = null;
  }

  async load() {
    return this.runs;
  }

  // The deflate stream of a part of a shard.
  async part(run, block, part) {
    const sizes = this.runs[run].sizes[block];
    const start = sizes.slice(0, part).reduce((sum, size) => sum + size, 0);
    const skipped = start % 3;
    const from = ((start - skipped) / 3) * 4;
    const to = Math.ceil((start + sizes[part]) / 3) * 4;
    const text = await this.base64Of(`${run}-${block}`);
    return fromBase64(text.slice(from, to)).subarray(skipped, skipped + sizes[part]);
  }

  async table(run) {
    this.tables ??= embedded("tables");
    return this.tables[run];
  }
}

function embeddedShards() {
  return async (place) => {
    let element = document.getElementById(`shard-${place}`);
    // The next shard's beginning, or the end of the page, says that this one is complete.
    while (document.readyState === "loading" && !(element && element.nextElementSibling)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      element = document.getElementById(`shard-${place}`);
    }
    return element.textContent;
  };
}

// A page from a file may not read other files, but may run them as scripts: each hands over its shard.
function shardsBeside(folder) {
  const waiting = new Map();
  window.gemShard = (place, text) => waiting.get(place)?.(text);
  const load = (place) =>
    new Promise((resolve, reject) => {
      waiting.set(place, resolve);
      const script = el("script", { src: `${encodeURIComponent(folder)}/${place}.js` });
      script.onload = () => script.remove();
      script.onerror = () => reject(new Error(`${folder}/${place}.js is missing: keep the folder beside the page`));
      document.head.append(script);
    });
  const shards = new Kept(KEPT_SHARDS, load);
  return (place) => shards.get(place);
}

// The server of `gem-core view`, which reads a run while it trains.
class ServerSource {
  constructor(boot) {
    this.block = boot.block;
    this.token = new URLSearchParams(location.search).get("token");
    this.tables = new Map();
  }

  async _ask(path, options) {
    const query = new URLSearchParams({ ...options, token: this.token });
    const answer = await fetch(`api/${path}?${query}`);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}: ${await answer.text()}`);
    return answer;
  }

  async load() {
    return this.news([]);
  }

  // What is not seen yet: a list of runs, each with the columns of its new episodes.
  async news(seen) {
    return (await this._ask("news", { seen: JSON.stringify(seen) })).json();
  }

  async part(run, block, part) {
    return new Uint8Array(await (await this._ask("part", { run, block, part })).arrayBuffer());
  }

  async table(run, largest) {
    const table = this.tables.get(run) ?? { ids: [], texts: [] };
    this.tables.set(run, table);
    if (table.ids.length <= largest) {
      const news = await (await this._ask("table", { run, start: table.ids.length })).json();
      table.ids.push(...news.ids);
      table.texts.push(...news.texts);
    }
    return table;
  }
}

function openSource() {
  const boot = embedded("boot");
  if (boot.source === "server") return new ServerSource(boot);
  return new ShardSource(boot, boot.source === "beside" ? shardsBeside(boot.folder) : embeddedShards());
}
