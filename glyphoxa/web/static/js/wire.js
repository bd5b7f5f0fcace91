// The websocket: presence at the table, events in, typed lines out. It reconnects by itself.
//
// A browser notices a frozen network only after minutes. So the server sends a beat every few seconds, and a connection
// without beats is replaced. This tab makes its own ticket for the seat, so that it gets the seat back even if it never
// received an answer on its last connection.
import { language, refusal, t } from "./words.js";

const RETRY_MS = [500, 1000, 2000, 4000];
const NOT_INVITED = 4401;
const FINAL_CODES = new Set([NOT_INVITED, 4403, 4404, 4409, 4410]);
const CONNECT_WITHIN_MS = 8000;
const LOOK_EVERY_MS = 500;
const SEAT = "glyphoxa.seat"; // survives a reload of this tab only

export class Wire extends EventTarget {
  #socket = null;
  #seat = { player: null, ticket: null, attempt: 0, sits: false };
  #tries = 0;
  #timer = 0;
  #watch = 0;
  #heard = 0;
  #lostAfter = CONNECT_WITHIN_MS;
  #welcomed = false;
  #refusal = null;

  constructor() {
    super();
    Object.assign(this.#seat, JSON.parse(sessionStorage.getItem(SEAT) ?? "{}"));
    addEventListener("online", () => this.#hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.#look());
  }

  get isOpen() {
    return this.#welcomed;
  }

  // The player whose seat this tab held before a reload; null if it left.
  get before() {
    return this.#seat.sits ? this.#seat.player : null;
  }

  open(player) {
    if (this.#seat.player !== player) Object.assign(this.#seat, { player, ticket: secret(), attempt: 0 });
    this.#seat.sits = true;
    this.#tries = 0;
    this.#connect();
  }

  // Watches without a seat.
  watch() {
    Object.assign(this.#seat, { player: null, ticket: null, sits: false });
    this.#tries = 0;
    this.#connect();
  }

  // Keeps the ticket, so that this tab can replace its own dead connection.
  close() {
    this.#seat.sits = false;
    this.#remember();
    this.#abandon(1000);
  }

  send(message) {
    if (!this.isOpen) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #connect() {
    this.#abandon();
    this.#seat.attempt += 1;
    this.#remember();
    const { player, ticket, attempt } = this.#seat;
    const query = new URLSearchParams(player === null ? { watch: 1 } : { player, ticket, attempt, language });
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws?${query}`);
    this.#socket = socket;
    this.#refusal = null;
    this.#heard = performance.now();
    this.#lostAfter = CONNECT_WITHIN_MS;
    this.#watch = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#tell("state", { state: "trying" });
    socket.onmessage = ({ data }) => socket === this.#socket && this.#take(JSON.parse(data));
    let isAccepted = false;
    socket.onopen = () => (isAccepted = true);
    socket.onclose = ({ code }) => {
      if (socket !== this.#socket) return;
      if (isAccepted) this.#closed(code);
      else this.#turnedAway(socket);
    };
  }

  #take(message) {
    this.#heard = performance.now();
    if (message.type === "beat") {
      this.send({ beat: true });
      return;
    }
    if (message.type === "refused") {
      this.#refusal = message;
      return;
    }
    if (message.type === "welcome") {
      this.#tries = 0;
      this.#welcomed = true;
      this.#lostAfter = message.lost_after_ms;
      this.#seat.ticket = message.ticket;
      this.#remember();
      this.#tell("state", { state: "on" });
    }
    this.#tell("message", message);
  }

  #look() {
    if (this.#socket && performance.now() - this.#heard > this.#lostAfter) this.#closed(0);
  }

  // A script cannot see why a websocket failed: no server, or no link in this browser.
  async #turnedAway(socket) {
    let code = 0;
    try {
      const response = await fetch("/api/table", { signal: AbortSignal.timeout(CONNECT_WITHIN_MS) });
      const { player } = this.#seat;
      const isOurs = response.ok && (player === null || (await response.json()).seats.includes(player));
      if (response.status === 401 || (response.ok && !isOurs)) code = NOT_INVITED;
    } catch {
      // The server is unreachable and may come back.
    }
    if (socket === this.#socket) this.#closed(code);
  }

  #closed(code) {
    const why = this.#refusal ? refusal(this.#refusal) : null;
    this.#abandon();
    if (FINAL_CODES.has(code)) {
      const { player } = this.#seat;
      // Whoever sits down here again does so as a new page: the ticket may be superseded.
      Object.assign(this.#seat, { player: null, ticket: null, sits: false });
      this.#tell("ended", { code, player, message: why ?? t(code === NOT_INVITED ? "ended.link" : "ended.elsewhere") });
      return;
    }
    const wait = RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)];
    this.#tell("state", { state: "gone", tries: this.#tries, wait, why });
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  // A socket in a frozen network closes late or never, so ignore it from now on.
  #abandon(code = 3000) {
    clearTimeout(this.#timer);
    clearInterval(this.#watch);
    const socket = this.#socket;
    this.#socket = null;
    this.#timer = 0;
    this.#welcomed = false;
    socket?.close(code);
  }

  #hurry() {
    if (this.#timer) this.#connect();
    else this.#look();
  }

  #remember() {
    sessionStorage.setItem(SEAT, JSON.stringify(this.#seat));
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

// 25 letters and digits. `crypto.randomUUID` exists only on https pages and localhost.
export function secret() {
  const bytes = crypto.getRandomValues(new Uint8Array(25));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
