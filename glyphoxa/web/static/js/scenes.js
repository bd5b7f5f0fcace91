// Moves the table. Choosing a scene does nothing by itself: the move affects everybody, so a button asks first.
import { $, element } from "./dom.js";
import { list, t } from "./words.js";

export const placeOf = (scene) => [scene.location, scene.time_of_day].filter(Boolean).join(", ");

export class Scenes {
  #table = null;
  #isUsable = false;

  // `move` gets the id of the confirmed scene.
  constructor(move) {
    const dialog = $("move-dialog");
    $("scene").addEventListener("change", () => this.#show());
    $("move").addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.#canMove) return;
      $("move-text").textContent = this.#question();
      dialog.returnValue = "stay";
      dialog.showModal();
    });
    // A busy browser reports a dialog that closed twice after both: only the first report may move the table.
    dialog.addEventListener("close", () => {
      const isConfirmed = dialog.returnValue === "move";
      dialog.returnValue = "stay";
      if (isConfirmed && this.#canMove) move($("scene").value);
    });
  }

  set isUsable(isUsable) {
    this.#isUsable = isUsable;
    this.#show();
  }

  show(table) {
    this.#table = table;
    // Players who may not move the table know only this scene.
    $("move").hidden = !table.scenes.length;
    $("scene").replaceChildren(...table.scenes.map((scene) => element("option", { value: scene.id }, placeOf(scene))));
    this.moved(table.scene);
  }

  moved(scene) {
    this.#table.scene = scene;
    $("scene").value = scene.id ?? "";
    $("move-dialog").close();
    this.#show();
  }

  get #canMove() {
    return this.#isUsable && this.#table !== null && $("scene").value !== this.#table.scene.id;
  }

  #show() {
    $("move-table").setAttribute("aria-disabled", String(!this.#canMove));
  }

  #question() {
    const scene = this.#table.scenes.find(({ id }) => id === $("scene").value);
    const there = scene.npcs.map(({ name }) => name);
    const npcs = there.length ? t("scene.there", { names: list(there, "conjunction") }) : t("scene.nobody");
    return `${t("scene.question", { place: placeOf(scene) })} ${npcs}`;
  }
}
