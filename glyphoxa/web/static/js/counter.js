// Shows how much of the text box's limit is used. A text that is too long is not sent and not cut.
import { t } from "./words.js";

const NEAR = 80; // characters before the limit at which the counter appears

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

  // Returns whether the text is too long; announces it.
  refuses() {
    const over = this.#length - this.#limit;
    if (over <= 0) return false;
    this.tell(t("say.refused", { n: over }));
    return true;
  }

  // Announced once for screen readers; the count itself would be read at each key.
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

  // Counts as the server does: code points, without surrounding space.
  get #length() {
    return [...this.#input.value.trim()].length;
  }
}
