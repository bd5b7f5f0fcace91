// What came of a turn that nobody heard an answer to, in words for the players. Who is thinking just now, and who waits.

const NOBODY = {
  no_name: ({ here }) => `Nobody was addressed: name someone, such as ${list(here.slice(0, 3), "or")}.`,
  no_npc: () => "Nobody was addressed: there is nobody in this scene who could answer.",
  absent: ({ here }) => `Nobody was addressed: whom you named is not here. Here: ${list(here, "and")}.`,
  // Talk among players, and sounds of listening, want no answer.
  player: () => "",
  out_of_character: () => "",
  filler: () => "",
  muted: () => "Whom you spoke to keeps silent: the game master wants it so.",
  paused: () => "The table was paused before anybody could answer.",
  command: () => "The table follows your command.",
  planning: () => "",
  narration: () => "",
  thinking: () => "",
  not_meant: () => "",
  about: () => "Nobody was addressed: to ask whom you talk about, call them by name.",
};

// "" for what the players have heard, or need not know. `here` are the names of the NPCs of the scene.
export function noteOn({ outcome, unaddressed, npc, player, speaker, broke_off }, { me, here }) {
  const isMine = player === me;
  const whom = isMine ? "you" : speaker;
  const again = isMine ? " Ask again." : "";
  switch (outcome) {
    case "not_addressed":
      return isMine ? (NOBODY[unaddressed]?.({ here }) ?? "") : "";
    case "superseded":
      return isMine ? `${npc} did not get to answer you. Ask again if it still matters.` : "";
    case "timed_out":
      return `${npc} took too long to answer ${whom}.${again}`;
    case "failed":
      return `${npc} could not answer ${whom}: something failed.${again}`;
    case "withheld":
      return `${npc} had an answer for ${whom} that may not be said, and it was withheld.`;
    default:
      return broke_off ? `${npc}'s answer broke off: something failed.` : "";
  }
}

export class Thinking {
  #line;
  #names = new Map(); // turn -> who thinks about it
  #heard = null; // the answer that is being heard: nobody else's can be

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
    const [one, many] = this.#heard ? ["waits", "wait"] : ["is", "are"];
    const what = this.#heard ? `until ${this.#heard.name} has finished…` : "thinking…";
    this.#line.textContent = names.length ? `${list(names, "and")} ${names.length > 1 ? many : one} ${what}` : "";
  }
}

export function list(names, last) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${last} ${names.at(-1)}`;
}
