// Elements and texts. What a model, an environment or a setting said reaches the page only through text nodes.

function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes);
  element.append(...children);
  return element;
}

function fill(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

// Characters that would be invisible, disguise a line or drive a terminal; half characters (lone surrogates).
const HIDDEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Cs}/u;
const EACH_HIDDEN = new RegExp(HIDDEN.source, "gu");

// The text, with hidden characters written as escapes.
function visible(text) {
  if (!HIDDEN.test(text)) return document.createTextNode(text);
  const parts = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(EACH_HIDDEN)) {
    parts.append(text.slice(end, match.index), el("span", { class: "hidden-character" }, escaped(match[0])));
    end = match.index + match[0].length;
  }
  parts.append(text.slice(end));
  return parts;
}

function escaped(character) {
  const code = character.codePointAt(0).toString(16);
  return code.length < 3 ? `\\x${code.padStart(2, "0")}` : code.length < 5 ? `\\u${code.padStart(4, "0")}` : `\\u{${code}}`;
}

// The same, where there can be no elements: choices, labels, the title of the page.
function plain(text) {
  return text.replace(EACH_HIDDEN, escaped);
}

const FIRST_CHARACTERS = 20000;
const MORE_CHARACTERS = 100000;

// A block of text of any length; the browser gets more of a long one only when asked.
function textBlock(text, attributes) {
  const block = el("div", { dir: "auto", ...attributes, class: `text ${attributes?.class ?? ""}` });
  let shown = 0;
  const more = el("button", { type: "button", class: "more", onclick: () => add(MORE_CHARACTERS) });
  function add(count) {
    const end = boundary(text, Math.min(text.length, shown + count));
    more.before(visible(text.slice(shown, end)));
    shown = end;
    more.textContent = `Show more: ${integer(text.length - shown)} of ${integer(text.length)} characters are left`;
    if (shown === text.length) more.remove();
  }
  block.append(more);
  add(FIRST_CHARACTERS);
  return block;
}

// Not within a character of two halves.
function boundary(text, end) {
  const code = text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end;
}

function preview(text, length = 90) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > length ? `${line.slice(0, boundary(line, length))}…` : line;
}

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(+value.toFixed(digits));
  return text.replaceAll("-", "−");
}

function integer(value) {
  return value.toLocaleString("en-US");
}

function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %` : "–";
}

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file may not reach the clipboard: the older way works there.
    const area = el("textarea", { class: "off-screen" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = done ? "Copied" : "Press Ctrl-C";
  setTimeout(() => (button.textContent = before), 1200);
}

// Keeps a label beside its field for people and for screen readers.
function labelled(text, field) {
  field.setAttribute("aria-label", text);
  return el("label", { class: "field" }, el("span", {}, text), field);
}

function select(options, value, onchange) {
  const field = el("select", { onchange: () => onchange(field.value) });
  for (const [key, text] of options) field.append(el("option", { value: key, selected: key === value }, text));
  return field;
}

function badge(text, kind) {
  return el("span", { class: `badge ${kind ?? ""}` }, visible(text));
}

// The text itself where nothing in it is hidden.
function shownText(text) {
  return HIDDEN.test(text) ? visible(text) : text;
}
