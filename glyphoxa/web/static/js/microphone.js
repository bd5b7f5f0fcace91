// The Talk button. It is never disabled while it has the focus: pressed while the microphone opens, it calls that off;
// pressed while the microphone is open, it closes it, also when the server is gone.
import { $ } from "./dom.js";
import { watchLevel } from "./voice.js";

const LABELS = { off: "Talk", opening: "Cancel", on: "Mute" };
const TOLD = { off: "", opening: "Waiting for the microphone. Press again to cancel.", on: "The microphone is on." };

export class Microphone {
  #voice;
  #mayOpen;
  #stopLevel = null;
  #state = "off";

  // `failed` is told why, in words for the player. `mayOpen` asks the player for their consent.
  constructor(voice, { failed, tried, mayOpen }) {
    this.#voice = voice;
    this.#mayOpen = mayOpen;
    $("talk").addEventListener("click", () => {
      if (this.#state !== "off") this.off();
      else if ($("talk").getAttribute("aria-disabled") !== "true") {
        tried();
        this.#open(failed);
      }
    });
  }

  off() {
    this.#voice.hush();
    this.#stopLevel?.();
    this.#stopLevel = null;
    $("mic-level").style.transform = "";
    this.#show("off");
  }

  async #open(failed) {
    try {
      if (!(await this.#mayOpen())) return;
      this.#show("opening");
      const stream = await this.#voice.talk();
      if (!stream) return; // called off
      this.#stopLevel = watchLevel(stream, (level) => ($("mic-level").style.transform = `scaleX(${level})`));
      this.#show("on");
    } catch (error) {
      this.off();
      failed(error.message);
    }
  }

  #show(state) {
    this.#state = state;
    const talk = $("talk");
    talk.dataset.state = state;
    talk.setAttribute("aria-busy", String(state === "opening"));
    $("talk-label").textContent = LABELS[state];
    $("mic-state").textContent = TOLD[state];
  }
}
