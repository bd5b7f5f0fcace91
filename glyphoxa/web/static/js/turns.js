// The waterfall of each turn: where the time went between the end of speech and the first sound.
import { element } from "./dom.js";

const SHOWN = 6;
const STAGES = {
  speech_end: ["speech ends", "ear"],
  transcript_final: ["transcript", "ear"],
  corrected: ["names corrected", "ear"],
  addressed: ["who is meant", "memory"],
  context_ready: ["memory", "memory"],
  first_token: ["first word", "mind"],
  first_sentence: ["first sentence", "mind"],
  turn_end: ["sure they finished", "wait"],
  floor: ["others finish", "wait"],
  filler: ["filler", "voice"],
  first_audio: ["first sound", "voice"],
};
const OUTCOMES = {
  answered: "answered",
  interrupted: "interrupted",
  not_addressed: "nobody was addressed",
  merged: "went on speaking",
  superseded: "someone else spoke first",
  withheld: "held back",
  timed_out: "took too long",
  failed: "failed",
};

export class Turns {
  #list;
  #empty;

  constructor({ list, empty }) {
    this.#list = list;
    this.#empty = empty;
  }

  clear() {
    this.#list.replaceChildren();
    this.#empty.hidden = false;
  }

  add(turn) {
    this.#empty.hidden = true;
    const seconds = turn.first_audio_ms === null ? "" : `${(turn.first_audio_ms / 1000).toFixed(2)} s`;
    const notes = [OUTCOMES[turn.outcome] ?? turn.outcome, turn.why];
    if (turn.recalled) notes.push(`${turn.recalled} recalled`);
    if (turn.omitted.length) notes.push(`left out: ${turn.omitted.join(", ")}`);
    if (turn.broke_off) notes.push("the answer broke off");
    this.#list.prepend(
      element(
        "li",
        { class: "turn", data: { outcome: turn.outcome } },
        element(
          "header",
          {},
          element("b", {}, turn.npc ? `${turn.speaker} → ${turn.npc}` : turn.speaker),
          element("span", { class: "ms", title: "end of speech to first sound" }, seconds),
        ),
        element("p", { class: "why" }, notes.filter(Boolean).join(" · ")),
        bars(turn.bars),
      ),
    );
    while (this.#list.children.length > SHOWN) this.#list.lastElementChild.remove();
  }
}

function bars(steps) {
  const grid = element("div", { class: "bars" });
  if (!steps.length) return grid;
  const from = Math.min(...steps.map((step) => step.from_ms));
  const width = Math.max(1, Math.max(...steps.map((step) => step.to_ms)) - from);
  for (const { stage, from_ms, to_ms } of steps) {
    const [label, by] = STAGES[stage] ?? [stage, "wait"];
    const bar = element("i", { data: { by, stage } });
    bar.style.left = `${(100 * (from_ms - from)) / width}%`;
    bar.style.width = `${(100 * (to_ms - from_ms)) / width}%`;
    grid.append(
      element("span", {}, label),
      element("span", { class: "track" }, bar),
      element("span", { class: "num" }, `${to_ms - from_ms} ms`),
    );
  }
  return grid;
}
