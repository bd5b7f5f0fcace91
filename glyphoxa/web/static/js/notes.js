// Notes about turns without an audible answer. Shows who is thinking, and who is waiting.
import { has, list, many, t } from "./words.js";

const SUGGESTED = 3;

// Returns "" where players need no note: they heard the answer, or the line needed none.
// `here` are the names of the NPCs of the scene.
export function noteOn({ outcome, unaddressed, npc, player, speaker, broke_off }, { me, here }) {
  const isMine = player === me;
  switch (outcome) {
    case "not_addressed":
      return isMine ? nobody(unaddressed, here) : "";
    case "superseded":
      return isMine ? t("note.superseded", { npc }) : "";
    case "timed_out":
    case "failed":
    case "withheld":
      return t(`note.${outcome}${isMine ? "_you" : ""}`, { npc, speaker });
    default:
      return broke_off ? t("note.broke_off", { npc }) : "";
  }
}

function nobody(why, here) {
  const names = why === "no_name" ? list(here.slice(0, SUGGESTED), "disjunction") : list(here, "conjunction");
  return has(`note.${why}`) ? t(`note.${why}`, { names }) : "";
}

export class Thinking {
  #line;
  #names = new Map(); // turn -> the NPC that thinks
  #heard = null; // the audible answer; there is only one at a time

  constructor(line) {
    this.#line = line;
  }

  clear() {
    this.#names.clear();
    this.#heard = null;
    this.#show();
  }

  begins({ turn, name }) {
    this.#names.set(turn, name);
    this.#show();
  }

  ends(turn) {
    if (this.#names.delete(turn)) this.#show();
  }

  heard({ turn, name }) {
    this.#heard = { turn, name };
    this.#show();
  }

  silent({ turn }) {
    if (this.#heard?.turn !== turn) return;
    this.#heard = null;
    this.#show();
  }

  #show() {
    const names = [...new Set(this.#names.values())];
    const told = { names: list(names, "conjunction"), heard: this.#heard?.name };
    this.#line.textContent = names.length ? many(this.#heard ? "waiting" : "thinking", names.length, told) : "";
  }
}
