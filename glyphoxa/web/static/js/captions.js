// The transcript, and speech in progress.
import { element } from "./dom.js";
import { t } from "./words.js";

const AT_THE_END_PX = 60;
const READ_AGAIN_MS = 500; // a screen reader has processed what was added while the log was silent

export class Captions {
  #log;
  #said;
  #partials;
  #empty;
  #scroller;
  #isFollowing = true;
  #me = null;
  #names = new Map();
  #open = new Map(); // speaker id -> bubble of speech in progress
  #known = new Map(); // utterance id -> the words that are shown
  #turns = new Map(); // turn whose answer is audible -> its speaker
  #notes = new Map(); // id of an utterance that is not shown yet -> the note about it

  constructor({ log, said, partials, empty, scroller }) {
    this.#log = log;
    this.#said = said;
    this.#partials = partials;
    this.#empty = empty;
    this.#scroller = scroller;
    // Do not scroll while the reader has scrolled up.
    scroller.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = scroller;
      this.#isFollowing = scrollHeight - scrollTop - clientHeight < AT_THE_END_PX;
    });
    new ResizeObserver(() => this.follow()).observe(scroller);
  }

  begin({ me, players, npcs }) {
    this.#me = me;
    this.#names = new Map([...players, ...npcs].map(({ id, name }) => [id, name]));
    this.#said.replaceChildren();
    this.#partials.replaceChildren();
    this.#open.clear();
    this.#known.clear();
    this.#turns.clear();
    this.#notes.clear();
    this.#empty.hidden = false;
  }

  // Adds the NPCs of a new scene.
  meet(npcs) {
    for (const { id, name } of npcs) this.#names.set(id, name);
  }

  // Shows past events without having a screen reader read them all again.
  replay(show) {
    this.#log.setAttribute("aria-live", "off");
    this.#isFollowing = true;
    show();
    this.follow();
    setTimeout(() => this.#log.setAttribute("aria-live", "polite"), READ_AGAIN_MS);
  }

  started({ player }) {
    this.#bubble(player, "player");
  }

  partial({ player, text }) {
    if (text) this.#bubble(player, "player").querySelector(".words").textContent = text;
    this.follow();
  }

  ended({ player, spans }) {
    this.#bubble(player, "player").querySelector(".words").replaceChildren(...spans.map(span));
    this.follow();
  }

  nothing({ player }) {
    this.#forget(player);
  }

  npcSpeaks({ npc, turn, text }) {
    this.#turns.set(turn, npc);
    const words = this.#bubble(npc, "npc").querySelector(".words");
    const before = words.textContent === "…" ? "" : `${words.textContent} `;
    words.textContent = before + text;
    this.follow();
  }

  npcSilent({ npc }) {
    this.#open.get(npc)?.classList.remove("speaking");
  }

  // Ends a turn. Removes its bubble if nothing of it was heard.
  over({ id, reply }) {
    if (reply === null) this.#forget(this.#turns.get(id));
    this.#turns.delete(id);
  }

  // Adds a note about an utterance: below it, or at the end if others have spoken since.
  note(text, utterance) {
    if (utterance && !this.#known.has(utterance)) this.#notes.set(utterance, text);
    else this.#append(element("li", { class: "note", data: utterance ? { utterance } : {} }, text));
  }

  // Shows a whisper to this player.
  whisper({ text }) {
    this.#append(element("li", { class: "note whisper" }, element("b", {}, t("log.whisper")), text));
  }

  divider(text) {
    this.#append(element("li", { class: "divider" }, element("span", {}, text)));
  }

  kept({ id, speaker, spans, cut_off, at_ms }) {
    if (this.#known.has(id)) return;
    this.#forget(speaker.id);
    const words = element("div", { class: "words" });
    write(words, spans, cut_off);
    this.#known.set(id, words);
    this.#append(this.#item(speaker.id, speaker.name, speaker.kind, words, at_ms));
    if (speaker.kind === "player") words.closest("li").dataset.utterance = id;
    if (this.#notes.has(id)) this.note(this.#notes.get(id), id);
    this.#notes.delete(id);
  }

  revised({ id, speaker, spans, cut_off }) {
    const words = this.#known.get(id);
    if (!words) return;
    write(words, spans, cut_off);
    words.closest("li").querySelector(".who b").textContent = speaker.name;
  }

  retracted({ id, is_retracted }) {
    const item = this.#known.get(id)?.closest("li");
    if (item) item.hidden = is_retracted;
  }

  #append(item) {
    this.#said.append(item);
    this.#empty.hidden = true;
    this.follow();
  }

  #bubble(id, kind) {
    let item = this.#open.get(id);
    if (!item) {
      item = this.#item(id, this.#names.get(id) ?? id, kind, element("div", { class: "words" }, "…"));
      item.classList.add(kind === "npc" ? "speaking" : "partial");
      this.#open.set(id, item);
      this.#partials.append(item);
      this.#empty.hidden = true;
      this.follow();
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

  follow() {
    if (this.#isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

function write(words, spans, cut_off) {
  words.replaceChildren(...spans.map(span));
  if (cut_off) words.append(" ", element("span", { class: "cut" }, t("log.interrupted")));
}

function span({ text, raw, why }) {
  if (raw === undefined) return document.createTextNode(text);
  const heard = t(why ? "log.heard_as_why" : "log.heard_as", { raw, why });
  return element(
    "mark",
    { tabindex: "0", "aria-label": `${text}, ${heard}`, data: { raw } },
    text,
    element("span", { class: "tip", "aria-hidden": "true" }, heard),
  );
}
