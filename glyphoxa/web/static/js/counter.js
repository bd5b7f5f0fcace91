// How much of the text box's limit is used. Nothing is ever cut: what is too long is not sent, and stays.
import { t } from "./words.js";

const NEAR = 80; // so many characters before the limit it begins to be shown

export class Counter {
  #input;
  #count;
  #told;
  #limit = Infinity;
  #state = "";

  constructor({ input, count, told }) {
    this.#input = input;
    this.#count = count;
    this.#told = told;
    input.addEventListener("input", () => this.show());
  }

  set limit(limit) {
    this.#limit = limit;
    this.show();
  }

  // Whether the text is too long. If so, that is said.
  refuses() {
    const over = this.#length - this.#limit;
    if (over <= 0) return false;
    this.tell(t("say.refused", { n: over }));
    return true;
  }

  // Said once to those who listen instead of looking; the count itself would chatter with each key.
  tell(text) {
    this.#told.textContent = "";
    this.#told.textContent = text;
  }

  show() {
    const left = this.#limit - this.#length;
    const state = left < 0 ? "over" : left <= NEAR ? "near" : "";
    this.#count.hidden = !state;
    this.#count.dataset.state = state;
    this.#count.textContent = t(left < 0 ? "say.over" : "say.left", { n: Math.abs(left) });
    this.#input.setAttribute("aria-invalid", String(state === "over"));
    if (state !== this.#state) this.tell(state ? t(state === "over" ? "say.told_over" : "say.told_left", { n: Math.abs(left) }) : "");
    this.#state = state;
  }

  // As the server counts: what is said without the space around it, a character for each code point.
  get #length() {
    return [...this.#input.value.trim()].length;
  }
}
