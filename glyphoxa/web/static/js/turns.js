// The waterfall of each turn: the stages between the end of speech and the first sound.
import { element } from "./dom.js";
import { has, seconds, t } from "./words.js";

const SHOWN = 6;
// What each stage belongs to.
const STAGES = {
  speech_end: "ear",
  transcript_final: "ear",
  corrected: "ear",
  addressed: "memory",
  context_ready: "memory",
  first_token: "mind",
  first_sentence: "mind",
  turn_end: "wait",
  floor: "wait",
  filler: "voice",
  first_audio: "voice",
};

// A stage or outcome without a text shows its key.
const named = (kind, what) => (has(`${kind}.${what}`) ? t(`${kind}.${what}`) : what);

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
    const wait = turn.first_audio_ms === null ? "" : `${seconds(turn.first_audio_ms)} s`;
    const notes = [named("outcome", turn.outcome), turn.why];
    if (turn.recalled) notes.push(t("figures.recalled", { n: turn.recalled }));
    if (turn.omitted.length) notes.push(t("figures.omitted", { parts: turn.omitted.join(", ") }));
    if (turn.broke_off) notes.push(t("figures.broke_off"));
    this.#list.prepend(
      element(
        "li",
        { class: "turn", data: { outcome: turn.outcome } },
        element(
          "header",
          {},
          element("b", {}, turn.npc ? `${turn.speaker} → ${turn.npc}` : turn.speaker),
          element("span", { class: "ms", title: t("figures.ms") }, wait),
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
    const bar = element("i", { data: { by: STAGES[stage] ?? "wait", stage } });
    bar.style.left = `${(100 * (from_ms - from)) / width}%`;
    bar.style.width = `${(100 * (to_ms - from_ms)) / width}%`;
    grid.append(
      element("span", {}, named("stage", stage)),
      element("span", { class: "track" }, bar),
      element("span", { class: "num" }, `${to_ms - from_ms} ms`),
    );
  }
  return grid;
}
