// Lists what this player said before and whether it is remembered, and changes that. The server decides whose lines they are.
import { $, element } from "./dom.js";
import { language, refusal, t } from "./words.js";

export class Remembered {
  #player = null;
  #last = null; // the last line of the list

  // `heardSince` returns when this player agreed to be heard; null if they did not.
  constructor({ heardSince }) {
    $("remembered-open").addEventListener("click", () => {
      const since = heardSince();
      $("remembered-heard").textContent = since === null ? t("remembered.not_heard") : t("remembered.heard", { when: when(since) });
      $("remembered-dialog").showModal();
      this.#show();
    });
    $("remembered-more").addEventListener("click", () => this.#more());
    $("remembered-forget").addEventListener("click", () => this.#decide({ session: true, remember: false }));
    $("remembered-allow").addEventListener("click", () => this.#decide({ session: true, remember: true }));
  }

  begin(player, isListed) {
    this.#player = player;
    $("remembered-open").hidden = player === null || !isListed;
  }

  end() {
    $("remembered-dialog").close();
  }

  async #show() {
    $("remembered-lines").replaceChildren();
    this.#last = null;
    await this.#more();
  }

  async #more() {
    const query = new URLSearchParams({ player: this.#player, ...(this.#last && { before: this.#last }) });
    const found = await this.#asked(`/api/remembered?${query}`);
    if (!found) return;
    this.#last = found.lines.at(-1)?.id ?? this.#last;
    $("remembered-lines").append(...found.lines.map((line) => this.#item(line)));
    $("remembered-more").hidden = !found.has_more;
    $("remembered-told").textContent = this.#last ? "" : t("remembered.none");
  }

  #item({ id, at_ms: at, text, state }) {
    const isWithheld = state === "withheld";
    const change = element("button", { type: "button", class: "plain", onclick: () => this.#decide({ line: id, remember: isWithheld }) }, t(isWithheld ? "remembered.allow" : "remembered.forget"));
    return element("li", { data: { state } }, element("p", {}, text), element("p", { class: "quiet" }, `${when(at)} \u00b7 ${t(`remembered.${state}`)} `, change));
  }

  async #decide(decision) {
    const body = JSON.stringify({ player: this.#player, ...decision });
    const done = await this.#asked("/api/remembered", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (done) await this.#show();
    $("remembered-title").focus();
  }

  async #asked(url, options = {}) {
    try {
      const response = await fetch(url, { ...options, signal: AbortSignal.timeout(10000) });
      const answer = await response.json();
      if (response.ok) return answer;
      $("remembered-told").textContent = refusal(answer.error);
    } catch {
      $("remembered-told").textContent = t("consent.away");
    }
    return null;
  }
}

const when = (ms) => new Date(ms).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
