// Bubbles of lines that are not confirmed: being sent, or refused with the reason and buttons.
import { element } from "./dom.js";
import { t } from "./words.js";

export class Pending {
  #list;
  #again;
  #forget;
  #shown = new Map(); // line id -> {problem, item}

  constructor(list, { again, forget }) {
    this.#list = list;
    this.#again = again;
    this.#forget = forget;
  }

  show(lines) {
    const ids = new Set(lines.map(({ id }) => id));
    for (const [id, { item }] of this.#shown) {
      if (ids.has(id)) continue;
      item.remove();
      this.#shown.delete(id);
    }
    for (const line of lines) {
      const shown = this.#shown.get(line.id);
      if (shown?.problem === line.problem) continue;
      const item = this.#item(line);
      if (shown) shown.item.replaceWith(item);
      else this.#list.append(item);
      this.#shown.set(line.id, { problem: line.problem, item });
    }
  }

  #item({ id, text, problem }) {
    const who = element("div", { class: "who" }, t(problem ? "line.refused" : "line.sending"));
    const item = element("li", { class: `said player mine ${problem ? "refused" : "pending"}`, data: { line: id } }, who);
    item.append(element("div", { class: "words" }, text));
    if (problem) {
      item.append(
        element(
          "div",
          { class: "problem" },
          element("span", { role: "alert" }, problem),
          element("button", { type: "button", onclick: () => this.#again(id) }, t("line.again")),
          element("button", { type: "button", onclick: () => this.#forget(id) }, t("line.discard")),
        ),
      );
    }
    return item;
  }
}
