// Who is at the table, what each is doing, where they are, and the seats in the lobby.
import { $, element } from "./dom.js";
import { face } from "./faces.js";
import { placeOf } from "./scenes.js";
import { t } from "./words.js";

export class People {
  #table = null;
  #me = null;
  #speaking = new Set();
  #thinking = new Map(); // turn -> the NPC that thinks
  #isPaused = false;
  #drawn = ""; // who is drawn; pictures are fetched again only when this changes

  show(table, me) {
    this.#table = table;
    this.#me = me;
    this.#isPaused = table.is_paused;
    $("campaign").textContent = table.campaign.name;
    document.title = `${table.campaign.name} · Glyphoxa`;
    this.#speaking.clear();
    this.#thinking.clear();
    this.#drawn = "";
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

  // Returns the names of the NPCs that players can speak to.
  get here() {
    return this.#npcsHere.map(({ name }) => name);
  }

  speaks(id, isSpeaking) {
    if (isSpeaking) this.#speaking.add(id);
    else this.#speaking.delete(id);
    this.#showStates();
  }

  thinks({ npc, turn }) {
    this.#thinking.set(turn, npc);
    this.#showStates();
  }

  // The turn has ended, with or without an answer.
  thought(turn) {
    if (this.#thinking.delete(turn)) this.#showStates();
  }

  paused(isPaused) {
    this.#isPaused = isPaused;
    this.#showStates();
  }

  get #npcsHere() {
    return this.#table.scene.npcs;
  }

  #draw() {
    const { players } = this.#table;
    const drawn = JSON.stringify([this.#npcsHere, players]);
    if (drawn !== this.#drawn) {
      $("people").replaceChildren(
        ...this.#npcsHere.map((npc) => listed(npc, ["person", "npc"], "")),
        ...players.map((player) => listed(player, ["person", "player", player.taken ? "here" : "away"], this.#noteOn(player))),
      );
      // On a phone, the list above is behind a button, but the faces are always visible.
      $("faces").replaceChildren(...this.#npcsHere.map((npc) => listed(npc, ["face", "npc"], "")));
      this.#drawn = drawn;
    }
    this.#showStates();
  }

  #noteOn({ id, taken }) {
    return id === this.#me ? t("people.you") : taken ? "" : t("people.away");
  }

  #showStates() {
    for (const item of document.querySelectorAll(".person, .face")) {
      const { id } = item.dataset;
      const isSpeaking = this.#speaking.has(id);
      item.classList.toggle("speaking", isSpeaking);
      if (!item.matches(".npc")) continue;
      const state = isSpeaking ? "speaking" : [...this.#thinking.values()].includes(id) ? "thinking" : this.#isPaused ? "paused" : "listening";
      if (item.dataset.state === state) continue;
      item.dataset.state = state;
      item.querySelector("small").textContent = t(`state.${state}`);
    }
  }
}

function listed(someone, kinds, note) {
  return element(
    "li",
    { class: kinds.join(" "), data: { id: someone.id } },
    face(someone),
    element("span", { class: "name" }, someone.name),
    element("small", {}, note),
    element("span", { class: "waves", ...(kinds.includes("npc") ? { "aria-hidden": "true" } : { role: "img", "aria-label": t("people.speaks") }) }, element("i"), element("i"), element("i")),
  );
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
          face(player),
          element("span", {}, element("strong", {}, player.name), element("span", { class: "quiet" }, t(player.taken ? "seat.taken" : "seat.take"))),
        ),
      ),
    ),
  );
  // Redrawing must not lose the focus, so a taken seat is not disabled.
  if (focused) $("seats").querySelector(`[data-player="${CSS.escape(focused)}"]`)?.focus();
  $("lobby-empty").hidden = !players.length || players.some((player) => !player.taken);
}
