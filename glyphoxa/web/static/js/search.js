// Searches the transcript on this page: hides lines without the words, including new ones.
import { many } from "./words.js";

export class Search {
  #input;
  #lines;
  #told;

  constructor({ input, lines, told }) {
    this.#input = input;
    this.#lines = lines;
    this.#told = told;
    input.addEventListener("input", () => this.#show());
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      input.value = "";
      this.#show();
    });
    new MutationObserver(() => input.value.trim() && this.#show()).observe(lines, { childList: true, subtree: true, characterData: true });
  }

  #show() {
    const wanted = this.#input.value.trim().toLowerCase();
    let n = 0;
    for (const line of this.#lines.children) {
      const isFound = !wanted || (line.matches(".said") && line.textContent.toLowerCase().includes(wanted));
      line.classList.toggle("unfound", !isFound);
      n += isFound;
    }
    this.#told.textContent = wanted ? many("search.found", n) : "";
  }
}
