// The Talk button. It is never disabled. While the microphone opens, pressing it cancels; while the microphone is open,
// pressing it closes it, even without a server. With push to talk, the microphone is heard only while the button or the
// space bar is held.
import { $ } from "./dom.js";
import { watchLevel } from "./input.js";
import { t } from "./words.js";

const HOLD = "glyphoxa.hold"; // stored for this browser
const TAIL_MS = 250; // people release the button before their last sound ends

export class Microphone {
  #voice;
  #mayOpen;
  #failed;
  #tried;
  #stopLevel = null;
  #state = "off";
  #isDown = false;
  #tail = 0;
  #lock = null;

  // `failed` gets a text for the player. `mayOpen` asks the player for consent.
  constructor(voice, { failed, tried, mayOpen }) {
    this.#voice = voice;
    this.#mayOpen = mayOpen;
    this.#failed = failed;
    this.#tried = tried;
    $("hold").checked = localStorage.getItem(HOLD) === "hold";
    $("hold").addEventListener("change", () => {
      localStorage.setItem(HOLD, this.#holds ? "hold" : "open");
      this.off();
    });
    const talk = $("talk");
    talk.addEventListener("click", () => this.#holds || this.#toggle());
    talk.addEventListener("pointerdown", (event) => {
      if (!this.#holds || event.button !== 0) return;
      talk.setPointerCapture(event.pointerId);
      this.#down();
    });
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) talk.addEventListener(type, () => this.#up());
    talk.addEventListener("contextmenu", (event) => this.#holds && event.preventDefault()); // a long press opens no menu
    addEventListener("keydown", (event) => {
      if (!this.#isKey(event)) return;
      event.preventDefault();
      if (!event.repeat) this.#down();
    });
    addEventListener("keyup", (event) => {
      if (this.#isKey(event)) event.preventDefault();
      if (event.code === "Space" || event.code === "Enter") this.#up();
    });
    addEventListener("blur", () => this.#up());
    document.addEventListener("visibilitychange", () => document.hidden || this.#stayAwake());
  }

  off() {
    clearTimeout(this.#tail);
    this.#isDown = false;
    this.#voice.hush();
    this.#stopLevel?.();
    this.#stopLevel = null;
    this.#lock?.release();
    this.#lock = null;
    $("mic-level").style.transform = "";
    this.#show("off");
  }

  get #holds() {
    return $("hold").checked;
  }

  // The space bar, except where it types or presses something else; Enter only on the button.
  #isKey(event) {
    if (!this.#holds || $("table").hidden || $("say").hidden || event.ctrlKey || event.altKey || event.metaKey) return false;
    if (event.target === $("talk")) return event.code === "Space" || event.code === "Enter";
    return event.code === "Space" && !event.target.closest("input, textarea, select, button, a, summary, dialog, [tabindex]");
  }

  #toggle() {
    if (this.#state !== "off") this.off();
    else if (this.#isUsable) this.#open();
  }

  #down() {
    clearTimeout(this.#tail);
    this.#isDown = true;
    if (this.#state === "held") this.#heard(true);
    else if (this.#state === "off" && this.#isUsable) this.#open();
  }

  #up() {
    if (!this.#isDown) return;
    this.#isDown = false;
    if (this.#state === "heard") this.#tail = setTimeout(() => this.#heard(false), TAIL_MS);
  }

  #heard(isHeard) {
    this.#voice.isMuted = !isHeard;
    this.#show(isHeard ? "heard" : "held");
  }

  get #isUsable() {
    return $("talk").getAttribute("aria-disabled") !== "true";
  }

  async #open() {
    this.#tried();
    try {
      if (!(await this.#mayOpen())) return;
      this.#show("opening");
      this.#voice.isMuted = this.#holds && !this.#isDown;
      const stream = await this.#voice.talk();
      if (!stream) return; // cancelled
      this.#stopLevel = watchLevel(stream, ({ rms }) => ($("mic-level").style.transform = `scaleX(${Math.min(1, rms * 6)})`));
      if (this.#holds) this.#heard(this.#isDown);
      else this.#show("on");
      this.#stayAwake();
    } catch (error) {
      this.off();
      this.#failed(error.message);
    }
  }

  // Keeps a phone awake whose player only listens.
  async #stayAwake() {
    if (this.#state === "off" || this.#state === "opening" || !navigator.wakeLock || (this.#lock && !this.#lock.released)) return;
    try {
      this.#lock = await navigator.wakeLock.request("screen");
      if (this.#state === "off") this.#lock.release();
    } catch {
      // Refused because the battery is low or the page is hidden. The table works without it.
    }
  }

  #show(state) {
    this.#state = state;
    const talk = $("talk");
    talk.dataset.state = state;
    talk.setAttribute("aria-busy", String(state === "opening"));
    $("talk-label").textContent = t(`talk.${state === "off" && this.#holds ? "held" : state}`);
    $("mic-state").textContent = state === "off" ? "" : t(`told.${state}`);
  }
}
