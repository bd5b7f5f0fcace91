// Typed lines that are not confirmed to be on disk. A line stays here until its utterance arrives. After each reconnect
// it is sent again with the same id, by which the table recognises it. Lines are resent one at a time, in order, and no
// faster than the rate limit. They survive a reload of this tab.
import { secret } from "./wire.js";
import { t } from "./words.js";

const LINES = "glyphoxa.lines";
const TOO_FAST_MS = 1100; // the rate limit allows one line a second

export class Lines {
  #send;
  #show;
  #lines = JSON.parse(sessionStorage.getItem(LINES) ?? "[]"); // {id, player, session, text, problem}
  #seat = null;
  #queue = []; // ids to be resent; the first one is on its way
  #timer = 0;

  // `send` sends a message to the server; `show` gets all lines of this seat whenever one changes.
  constructor({ send, show }) {
    this.#send = send;
    this.#show = show;
  }

  // Returns whether a message is about a line that has a bubble here.
  isOwn({ type, player, line }) {
    if (player !== this.#seat?.player) return false;
    return type === "speech_started" ? this.#mine.some(({ problem }) => !problem) : this.#mine.some(({ id }) => id === line);
  }

  // Called when the seat is taken (again), after the history: sends the lines that are still unconfirmed.
  begin({ player, session }) {
    this.#seat = { player, session };
    for (const line of this.#mine) {
      if (line.session !== session) line.problem ??= t("line.reopened");
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

  // Returns whether the line was one of these.
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
