// What was typed and is not known to be on disk yet. A line stays here until its utterance comes back; it is sent
// again after every break under the same id, by which the table knows it. What is sent again goes one at a time, in the
// order in which it was typed, and as slowly as the table takes it in. Lines survive a reload of this tab.
import { secret } from "./wire.js";
import { t } from "./words.js";

const LINES = "glyphoxa.lines";
const TOO_FAST_MS = 1100; // the table takes in one line a second of whoever sends too many

export class Lines {
  #send;
  #show;
  #lines = JSON.parse(sessionStorage.getItem(LINES) ?? "[]"); // {id, player, session, text, problem}
  #seat = null;
  #queue = []; // ids of what is sent again; the first one is on its way
  #timer = 0;

  // `send` takes a message for the server; `show` is told of all lines of this seat whenever one of them changes.
  constructor({ send, show }) {
    this.#send = send;
    this.#show = show;
  }

  // Whether what is told of somebody's words is about a line that has its bubble here.
  isOwn({ type, player, line }) {
    if (player !== this.#seat?.player) return false;
    return type === "speech_started" ? this.#mine.some(({ problem }) => !problem) : this.#mine.some(({ id }) => id === line);
  }

  // We sit (again). What is known to be on disk has been told by now; the rest is sent.
  begin({ player, session }) {
    this.#seat = { player, session };
    for (const line of this.#mine) {
      if (line.session !== session) line.problem ??= t("line.anew");
    }
    this.#queue = this.#mine.filter(({ problem }) => !problem).map(({ id }) => id);
    this.#putFirst();
    this.#changed();
  }

  say(text) {
    const line = { id: secret(), ...this.#seat, text, problem: null };
    this.#lines.push(line);
    if (this.#queue.length) this.#queue.push(line.id);
    else this.#put(line);
    this.#changed();
  }

  kept(id) {
    if (this.#lines.some((line) => line.id === id)) this.forget(id);
  }

  // Returns whether it was one of ours.
  refused(id, problem, code) {
    const line = this.#lines.find((each) => each.id === id);
    if (!line) return false;
    if (code === "rationed" && id === this.#queue[0]) {
      this.#timer = setTimeout(() => this.#putFirst(), TOO_FAST_MS);
      return true;
    }
    this.#leaveQueue(id);
    line.problem = problem;
    this.#changed();
    return true;
  }

  again(id) {
    const line = this.#lines.find((each) => each.id === id);
    if (!line) return;
    Object.assign(line, { problem: null, session: this.#seat.session });
    this.#put(line);
    this.#changed();
  }

  forget(id) {
    this.#lines = this.#lines.filter((line) => line.id !== id);
    this.#leaveQueue(id);
    this.#changed();
  }

  get #mine() {
    return this.#lines.filter(({ player }) => player === this.#seat?.player);
  }

  #putFirst() {
    clearTimeout(this.#timer);
    const line = this.#lines.find(({ id }) => id === this.#queue[0]);
    if (line) this.#put(line);
  }

  #leaveQueue(id) {
    const wasFirst = id === this.#queue[0];
    this.#queue = this.#queue.filter((each) => each !== id);
    if (wasFirst) this.#putFirst();
  }

  #put({ id, text }) {
    this.#send({ say: text, id });
  }

  #changed() {
    sessionStorage.setItem(LINES, JSON.stringify(this.#lines));
    this.#show(this.#mine);
  }
}
