// Where the parts of shards come from: this page, files beside it, or the server. See shards.py.

const KEPT_SHARDS = 6;

// What an element of the page has as JSON. It is read once: its text would stay in memory.
function embedded(id) {
  const element = document.getElementById(id);
  const value = JSON.parse(element.textContent);
  element.remove();
  return value;
}

const fromBase64 = Uint8Array.fromBase64
  ? (text) => Uint8Array.fromBase64(text)
  : (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

async function inflated(blob) {
  const stream = blob.stream().pipeThrough(new DecompressionStream("deflate-raw"));
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

// Shards as blobs, which browsers keep outside the page's memory; only the wanted part is read.
class ShardSource {
  constructor(boot, blobOf) {
    this.block = boot.block;
    this.blobOf = blobOf;
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
    const blob = await this.blobOf(`${run}-${block}`);
    if (blob.size < start + sizes[part]) throw new Error("a part of this page is missing: it was not written or copied whole");
    return blob.slice(start, start + sizes[part]);
  }

  async table(run) {
    this.tables ??= embedded("tables");
    return this.tables[run];
  }
}

const SHARD = "script[id^=shard-]";
const PAUSE = 20; // milliseconds

// Takes the shards out of the page while it is being parsed, a few at a time.
function embeddedShards() {
  const blobs = new Map();
  const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));
  let left = true;
  const takeSome = () => {
    const parsing = document.readyState === "loading";
    const until = performance.now() + PAUSE / 2;
    let one = document.querySelector(SHARD);
    // The next element, or the end of the page, says that a shard is complete.
    while (one && (one.nextElementSibling || !parsing) && performance.now() < until) {
      blobs.set(one.id.slice("shard-".length), decodedShard(one.textContent));
      one.remove();
      one = document.querySelector(SHARD);
    }
    return parsing || one !== null;
  };
  const take = async () => {
    while ((left = takeSome())) await pause();
  };
  take();
  return async (place) => {
    while (left && !blobs.has(place)) await pause();
    return blobs.get(place) ?? new Blob();
  };
}

function decodedShard(text) {
  try {
    return new Blob([fromBase64(text)]);
  } catch {
    return new Blob(); // the file ends within it
  }
}

// A page from a file may not read other files, but may run them as scripts: each hands over its shard.
function shardsBeside(folder) {
  const waiting = new Map();
  window.gemShard = (place, text) => waiting.get(place)?.(new Blob([fromBase64(text)]));
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
    return (await this._ask("part", { run, block, part })).blob();
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
