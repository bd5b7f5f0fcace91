// Who is at the table, who is speaking, where they are, and the seats in the lobby.
import { $, element, initial } from "./dom.js";
import { placeOf } from "./scenes.js";
import { t } from "./words.js";

export class People {
  #table = null;
  #me = null;
  #speaking = new Set();

  show(table, me) {
    this.#table = table;
    this.#me = me;
    $("campaign").textContent = table.campaign.name;
    document.title = `${table.campaign.name} · Glyphoxa`;
    this.#speaking.clear();
    this.scene(table.scene);
  }

  scene(scene) {
    this.#table.scene = scene;
    $("scene-description").textContent = scene.read_aloud || scene.description || "";
    $("place").textContent = placeOf(scene);
    this.#draw();
  }

  players(players) {
    this.#table.players = players;
    this.#draw();
  }

  // The names of the NPCs who could be spoken to.
  get here() {
    return this.#npcsHere.map(({ name }) => name);
  }

  speaks(id, isSpeaking) {
    if (isSpeaking) this.#speaking.add(id);
    else this.#speaking.delete(id);
    this.#draw();
  }

  get #npcsHere() {
    return this.#table.scene.npcs;
  }

  #draw() {
    const npcs = this.#npcsHere.map((npc) => this.#person(npc, "npc", ""));
    const players = this.#table.players.map((player) =>
      this.#person(player, `player${player.taken ? "" : " away"}`, player.id === this.#me ? t("people.you") : player.taken ? "" : t("people.away")),
    );
    $("people").replaceChildren(...npcs, ...players);
  }

  #person({ id, name }, kind, note) {
    const isSpeaking = this.#speaking.has(id);
    return element(
      "li",
      { class: `person ${kind}${isSpeaking ? " speaking" : ""}`, data: { id } },
      element("span", { class: "avatar", "aria-hidden": "true" }, initial(name)),
      element("span", {}, name),
      element("small", {}, note),
      element("span", { class: "waves", role: "img", "aria-label": t("people.speaks") }, element("i"), element("i"), element("i")),
    );
  }
}

export function drawSeats(players, sit) {
  const focused = document.activeElement?.closest(".seat")?.dataset.player;
  $("seats").replaceChildren(
    ...players.map((player) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            class: "seat",
            type: "button",
            "aria-disabled": String(player.taken),
            data: { player: player.id },
            onclick: () => player.taken || sit(player.id),
          },
          element("span", { class: "avatar", "aria-hidden": "true" }, initial(player.name)),
          element("span", {}, element("strong", {}, player.name), element("span", { class: "quiet" }, t(player.taken ? "seat.taken" : "seat.take"))),
        ),
      ),
    ),
  );
  // Drawn anew, a seat must not lose the focus: a taken one is not disabled either.
  if (focused) $("seats").querySelector(`[data-player="${CSS.escape(focused)}"]`)?.focus();
  $("lobby-empty").hidden = !players.length || players.some((player) => !player.taken);
}
