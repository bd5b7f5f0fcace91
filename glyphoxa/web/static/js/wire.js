// The websocket: presence at the table, events in, words out. Comes back by itself.

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const FINAL_CODES = new Set([4403, 4404, 4409, 4410]);

export class Wire extends EventTarget {
  #socket = null;
  #player = null;
  #ticket = null;
  #tries = 0;
  #timer = 0;
  #refusal = null;

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  get player() {
    return this.#player;
  }

  get ticket() {
    return this.#ticket;
  }

  open(player, ticket) {
    this.#player = player;
    this.#ticket = ticket ?? null;
    this.#tries = 0;
    this.#connect();
  }

  close() {
    clearTimeout(this.#timer);
    this.#player = null;
    this.#ticket = null;
    this.#socket?.close(1000);
    this.#socket = null;
  }

  send(message) {
    if (!this.isOpen) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #connect() {
    const query = new URLSearchParams({ player: this.#player });
    if (this.#ticket) query.set("ticket", this.#ticket);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws?${query}`);
    this.#socket = socket;
    this.#refusal = null;
    this.#tell("state", { state: "trying" });
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "welcome") {
        this.#tries = 0;
        this.#ticket = message.ticket;
        this.#tell("state", { state: "on" });
      }
      if (message.type === "refused") this.#refusal = message;
      else this.#tell("message", message);
    };
    socket.onclose = ({ code }) => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      // A seat that was freed while we were away has another ticket now; an old one would be refused.
      const refused = this.#refusal;
      if (refused || FINAL_CODES.has(code)) {
        this.#tell("ended", { code, message: refused?.message ?? "This seat is open in another window now." });
        return;
      }
      const wait = RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)];
      this.#tell("state", { state: "gone", tries: this.#tries, wait });
      this.#timer = setTimeout(() => this.#connect(), wait);
    };
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
