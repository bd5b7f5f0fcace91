// Asks for consent before the microphone opens, and withdraws it. The server enforces consent.
import { $, element } from "./dom.js";
import { refusal, t } from "./words.js";

export class Consent {
  #player = null;
  #text = null; // from `welcome`; null if this table asks for no consent
  #isGiven = false;
  #givenAt = null; // on this page
  #answered = null;
  #changed;
  #failed;

  // `changed` gets whether this seat may be heard now; `failed` gets why a decision could not be saved.
  constructor({ changed, failed }) {
    this.#changed = changed;
    this.#failed = failed;
    const dialog = $("consent-dialog");
    dialog.addEventListener("close", () => {
      this.#answered?.(dialog.returnValue === "agree");
      this.#answered = null;
    });
    $("withdraw").addEventListener("click", () => this.withdraw());
  }

  get isGiven() {
    return this.#isGiven;
  }

  // When this player agreed to be heard; null if they did not, or withdrew.
  get givenAt() {
    return this.#isGiven ? (this.#givenAt ?? this.#text?.given_at_ms ?? null) : null;
  }

  begin(player, text) {
    if (text?.text !== this.#text?.text || player !== this.#player) this.end();
    this.#player = player;
    this.#text = text;
    this.#is(!text || text.given_at_ms !== null);
  }

  end() {
    if ($("consent-dialog").open) $("consent-dialog").close("decline");
  }

  // Returns whether the player agrees now, or agreed before.
  async ask() {
    if (this.#isGiven) return true;
    const dialog = $("consent-dialog");
    const { language, title, lines, agree, decline } = this.#text;
    dialog.lang = language;
    $("consent-title").textContent = title;
    $("consent-lines").replaceChildren(...lines.map((line) => element("li", {}, line)));
    $("consent-agree").textContent = agree;
    $("consent-decline").textContent = decline;
    dialog.returnValue = "decline";
    const agrees = await new Promise((answered) => {
      this.#answered = answered;
      dialog.showModal();
    });
    if (!agrees || !(await this.#decide(true))) return false;
    this.#givenAt = Date.now();
    this.#is(true);
    this.#changed(true);
    return true;
  }

  // The sound ends before the server answers.
  async withdraw() {
    this.lost();
    $("talk").focus();
    await this.#decide(false);
  }

  // Consent was withdrawn, on this page or elsewhere.
  lost() {
    this.#is(false);
    this.#changed(false);
  }

  #is(isGiven) {
    this.#isGiven = isGiven;
    $("withdraw").hidden = !isGiven || !this.#text;
  }

  async #decide(agrees) {
    try {
      const response = await fetch("/api/consent", {
        method: "POST",
        signal: AbortSignal.timeout(10000),
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ player: this.#player, agrees, text: this.#text.text }),
      });
      if (response.ok) return true;
      this.#failed(refusal((await response.json()).error), agrees);
    } catch {
      this.#failed(t("consent.away"), agrees);
    }
    return false;
  }
}
