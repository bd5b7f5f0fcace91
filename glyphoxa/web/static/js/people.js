// Who is at the table, who is speaking, where the scene is, and the seats in the lobby.
import { $, element, initial } from "./dom.js";

export class People {
  #table = null;
  #me = null;
  #speaking = new Set();

  show(table, me) {
    this.#table = table;
    this.#me = me;
    $("campaign").textContent = table.campaign.name;
    document.title = `${table.campaign.name} · Glyphoxa`;
    $("scene").replaceChildren(
      ...table.scenes.map((scene) => element("option", { value: scene.id }, [scene.location, scene.time_of_day].filter(Boolean).join(", "))),
    );
    this.#speaking.clear();
    this.scene(table.scene);
  }

  scene(scene) {
    this.#table.scene = scene;
    $("scene").value = scene.id;
    $("scene-description").textContent = scene.description;
    $("place").textContent = [scene.location, scene.time_of_day].filter(Boolean).join(", ");
    this.#draw();
  }

  players(players) {
    this.#table.players = players;
    this.#draw();
  }

  speaks(id, isSpeaking) {
    if (isSpeaking) this.#speaking.add(id);
    else this.#speaking.delete(id);
    this.#draw();
  }

  #draw() {
    const here = new Set(this.#table.scene.npcs);
    const npcs = this.#table.npcs.filter((npc) => here.has(npc.id)).map((npc) => this.#person(npc, "npc", ""));
    const players = this.#table.players.map((player) =>
      this.#person(player, `player${player.taken ? "" : " away"}`, player.id === this.#me ? "you" : player.taken ? "" : "away"),
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
      element("span", { class: "waves", role: "img", "aria-label": "is speaking" }, element("i"), element("i"), element("i")),
    );
  }
}

export function drawSeats(players, sit) {
  $("seats").replaceChildren(
    ...players.map((player) =>
      element(
        "li",
        {},
        element(
          "button",
          { class: "seat", type: "button", disabled: player.taken, data: { player: player.id }, onclick: () => sit(player.id) },
          element("span", { class: "avatar", "aria-hidden": "true" }, initial(player.name)),
          element("span", {}, element("strong", {}, player.name), element("span", { class: "quiet" }, player.taken ? "already at the table" : "take this seat")),
        ),
      ),
    ),
  );
  $("lobby-empty").hidden = players.some((player) => !player.taken);
}
