// What has been said, and what is being said now.
import { element } from "./dom.js";

export class Captions {
  #log;
  #partials;
  #empty;
  #scroller;
  #me = null;
  #names = new Map();
  #open = new Map(); // speaker id -> bubble of what is being said
  #known = new Map(); // utterance id -> the words that are shown of it

  constructor({ log, partials, empty, scroller }) {
    this.#log = log;
    this.#partials = partials;
    this.#empty = empty;
    this.#scroller = scroller;
  }

  begin({ me, players, npcs }) {
    this.#me = me;
    this.#names = new Map([...players, ...npcs].map(({ id, name }) => [id, name]));
    this.#log.replaceChildren();
    this.#partials.replaceChildren();
    this.#open.clear();
    this.#known.clear();
    this.#empty.hidden = false;
  }

  started({ player }) {
    this.#bubble(player, "player");
  }

  partial({ player, text }) {
    if (text) this.#bubble(player, "player").querySelector(".words").textContent = text;
    this.#follow();
  }

  ended({ player, spans }) {
    this.#bubble(player, "player").querySelector(".words").replaceChildren(...spans.map(span));
    this.#follow();
  }

  nothing({ player }) {
    this.#forget(player);
  }

  npcSpeaks({ npc, text }) {
    const words = this.#bubble(npc, "npc").querySelector(".words");
    const before = words.textContent === "…" ? "" : `${words.textContent} `;
    words.textContent = before + text;
    this.#follow();
  }

  npcSilent({ npc }) {
    this.#open.get(npc)?.classList.remove("speaking");
  }

  kept({ id, speaker, spans, cut_off, at_ms }) {
    if (this.#known.has(id)) return;
    this.#forget(speaker.id);
    const words = element("div", { class: "words" });
    write(words, spans, cut_off);
    this.#known.set(id, words);
    this.#log.append(this.#item(speaker.id, speaker.name, speaker.kind, words, at_ms));
    this.#empty.hidden = true;
    this.#follow();
  }

  revised({ id, spans, cut_off }) {
    const words = this.#known.get(id);
    if (words) write(words, spans, cut_off);
  }

  #bubble(id, kind) {
    let item = this.#open.get(id);
    if (!item) {
      item = this.#item(id, this.#names.get(id) ?? id, kind, element("div", { class: "words" }, "…"));
      item.classList.add(kind === "npc" ? "speaking" : "partial");
      this.#open.set(id, item);
      this.#partials.append(item);
      this.#empty.hidden = true;
      this.#follow();
    }
    return item;
  }

  #forget(id) {
    this.#open.get(id)?.remove();
    this.#open.delete(id);
  }

  #item(id, name, kind, words, at_ms) {
    const who = element("div", { class: "who" }, element("b", {}, name));
    if (at_ms) {
      const time = new Date(at_ms);
      who.append(element("time", { datetime: time.toISOString() }, time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })));
    }
    return element("li", { class: `said ${kind}${id === this.#me ? " mine" : ""}`, data: { speaker: id } }, who, words);
  }

  #follow() {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
    // Someone who scrolled up is reading; do not pull the page from under them.
    if (scrollHeight - scrollTop - clientHeight < 240) this.#scroller.scrollTop = scrollHeight;
  }
}

function write(words, spans, cut_off) {
  words.replaceChildren(...spans.map(span));
  if (cut_off) words.append(" ", element("span", { class: "cut" }, "— interrupted"));
}

function span({ text, raw, why }) {
  if (raw === undefined) return document.createTextNode(text);
  const heard = `heard as “${raw}”${why ? `: ${why}` : ""}`;
  return element(
    "mark",
    { tabindex: "0", "aria-label": `${text}, ${heard}`, data: { raw } },
    text,
    element("span", { class: "tip", "aria-hidden": "true" }, heard),
  );
}
