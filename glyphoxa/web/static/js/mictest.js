// Tests the microphone before the player takes a seat or talks. The sound is measured here and not sent.
import { $ } from "./dom.js";
import { openMicrophone, stop, watchLevel } from "./input.js";
import { Verdict } from "./verdict.js";
import { t } from "./words.js";

const QUIETEST_DB = -60; // the left end of the meter

export class MicrophoneTest {
  #stream = null;
  #stopLevel = null;
  #asked = null; // the latest test; an older one that was closed opens nothing

  // `begins` is called first, so that the table does not hear the test.
  constructor({ begins }) {
    const dialog = $("test-dialog");
    for (const button of document.querySelectorAll("[data-opens=test]")) {
      button.addEventListener("click", () => {
        begins();
        dialog.showModal();
        this.#test();
      });
    }
    $("test-again").addEventListener("click", () => {
      $("test-title").focus(); // the button disappears
      this.#test();
    });
    dialog.addEventListener("close", () => this.#over());
  }

  async #test() {
    this.#over();
    const asked = (this.#asked = Symbol("test"));
    $("test-again").hidden = true;
    $("test-device").textContent = "";
    this.#tell("waiting");
    try {
      const stream = await openMicrophone("test");
      if (asked !== this.#asked) return stop(stream);
      this.#stream = stream;
      this.#listen(stream);
    } catch (error) {
      if (asked === this.#asked) this.#failed(error.message);
    }
  }

  #listen(stream) {
    const [track] = stream.getAudioTracks();
    $("test-device").textContent = track.label ? t("test.device", { name: track.label }) : "";
    track.onended = () => {
      this.#over();
      this.#failed(t("test.lost"));
    };
    const verdict = new Verdict();
    this.#tell("speak");
    this.#stopLevel = watchLevel(stream, (level) => {
      this.#show(level.rms);
      const found = verdict.take(level, performance.now());
      if (found !== $("test-told").dataset.state) this.#tell(found);
    });
  }

  #over() {
    this.#asked = null;
    this.#stopLevel?.();
    this.#stopLevel = null;
    stop(this.#stream);
    this.#stream = null;
    this.#show(0);
  }

  #show(rms) {
    const db = 20 * Math.log10(Math.max(rms, 1e-6));
    const share = Math.min(1, Math.max(0, 1 - db / QUIETEST_DB));
    $("test-level").setAttribute("aria-valuenow", String(Math.round(100 * share)));
    $("test-bar").style.transform = `scaleX(${share})`;
  }

  #tell(state) {
    $("test-told").dataset.state = state;
    $("test-told").textContent = t(`test.${state}`);
  }

  #failed(words) {
    $("test-told").dataset.state = "failed";
    $("test-told").textContent = words;
    $("test-again").hidden = false;
  }
}
