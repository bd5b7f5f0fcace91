import { $, element } from "./dom.js";
import { t } from "./words.js";

// Shows that the page will retry, the seconds until then, and a button to retry now. All attempts share one notice, so
// that its button keeps the focus.
export class Again {
  #topic;
  #act;
  #item = null;
  #text = element("span", {});
  // Hidden from screen readers, which would read it aloud each second.
  #left = element("span", { class: "left", "aria-hidden": "true" });
  #due = 0;
  #timer = 0;

  constructor({ topic, act }) {
    this.#topic = topic;
    this.#act = act;
  }

  waits(text, wait) {
    if (!this.#item) {
      const button = element("button", { type: "button", onclick: this.#act }, t("again.button"));
      this.#item = element("p", { class: "notice", data: { topic: this.#topic } }, this.#text, this.#left, button);
      $("notices").append(this.#item);
    }
    if (this.#text.textContent !== text) this.#text.textContent = text;
    this.#due = Date.now() + wait;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#show(), 250);
    this.#show();
  }

  tries() {
    clearInterval(this.#timer);
    this.#left.textContent = t("again.now");
  }

  over() {
    clearInterval(this.#timer);
    const hadFocus = this.#item?.contains(document.activeElement);
    this.#item?.remove();
    this.#item = null;
    if (hadFocus) $($("lobby").hidden ? "say-text" : "lobby-title").focus();
  }

  #show() {
    this.#left.textContent = t("again.in", { n: Math.max(1, Math.ceil((this.#due - Date.now()) / 1000)) });
  }
}
