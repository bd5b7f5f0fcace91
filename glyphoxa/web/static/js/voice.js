// Sound over WebRTC. The connection is made when the player takes a seat, without a microphone. So the player hears the
// NPCs at once, and the browser asks for the microphone only when the player wants to talk.
import { openMicrophone, stop } from "./input.js";
import { reason, t } from "./words.js";

const FIRST_WAIT_MS = 1000; // doubled with each failure
const LONGEST_WAIT_MS = 30000;
const ATTEMPTS = 10; // three minutes in all; then the player must retry
const LOST_AFTER_MS = 4000;
const GATHER_AT_MOST_MS = 1500;
const ANSWER_WITHIN_MS = 15000;

class Refused extends Error {}
class NoConsent extends Refused {}

export class Voice extends EventTarget {
  #audio;
  #credentials = null;
  #iceServers = [];
  #pc = null;
  #dialling = null; // aborts an offer that is no longer needed
  #microphone = null;
  #isTalking = false;
  #isMuted = false;
  #isHeard = false; // whether the player agreed; until then, sound is only received
  #asked = null; // the latest call of talk(), until hush()
  #tries = 0;
  #timer = 0;
  #isWaiting = false; // for the next attempt, or for the player to retry

  constructor(audio) {
    super();
    this.#audio = audio;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
  }

  get isTalking() {
    return this.#isTalking;
  }

  // While true, silence is sent and the microphone stays open.
  set isMuted(isMuted) {
    this.#isMuted = isMuted;
    for (const track of this.#microphone?.getAudioTracks() ?? []) track.enabled = !isMuted;
  }

  // `iceServers`: from the server, to find a network path. `isHeard`: see `hear`.
  connect({ iceServers, isHeard, ...credentials }) {
    this.#isHeard = isHeard;
    this.#credentials = credentials;
    this.#iceServers = iceServers;
    this.#tries = 0;
    return this.#dial();
  }

  // Sets whether the server may hear this seat, and reconnects.
  hear(isHeard) {
    if (this.#isHeard === isHeard) return;
    this.#isHeard = isHeard;
    this.#tries = 0;
    if (this.#credentials) this.#dial();
  }

  hangUp() {
    clearTimeout(this.#timer);
    this.#credentials = null;
    this.#drop();
    this.#tell("state", { state: "off" });
  }

  // Asks for the microphone the first time. Throws MicrophoneError with a text for the player. Returns null if hush()
  // cancelled it meanwhile.
  async talk() {
    const asked = (this.#asked = Symbol("talk"));
    const isCalledOff = () => this.#asked !== asked;
    if (!this.#microphone?.active) {
      let microphone;
      try {
        microphone = await openMicrophone("mic");
      } catch (error) {
        if (isCalledOff()) return null;
        throw error;
      }
      if (isCalledOff()) {
        stop(microphone);
        return null;
      }
      this.#microphone = microphone;
    }
    this.#isTalking = true;
    const [track] = this.#microphone.getAudioTracks();
    track.onended = () => this.#microphoneLost();
    track.enabled = !this.#isMuted;
    await this.#sender?.replaceTrack(track);
    return isCalledOff() ? null : this.#microphone;
  }

  async hush() {
    this.#asked = null;
    this.#isTalking = false;
    // Close the microphone first: nothing awaited may keep it open.
    stop(this.#microphone);
    this.#microphone = null;
    await this.#sender?.replaceTrack(null);
  }

  get #sender() {
    return this.#pc?.getTransceivers()[0]?.sender;
  }

  #microphoneLost() {
    this.#isTalking = false;
    this.#microphone = null;
    this.#tell("microphone-lost", {});
  }

  async #dial() {
    this.#drop();
    this.#isWaiting = false;
    this.#tell("state", { state: "trying" });
    const pc = new RTCPeerConnection({ iceServers: this.#iceServers });
    this.#pc = pc;
    const dialling = (this.#dialling = new AbortController());
    // The first medium must be audio. With consent, it has both directions from the start, so that talking later needs no
    // new offer. Without consent, the server refuses an offer that sends.
    const track = this.#isTalking && this.#isHeard ? this.#microphone?.getAudioTracks()[0] : null;
    pc.addTransceiver(track ?? "audio", { direction: this.#isHeard ? "sendrecv" : "recvonly" });
    // The server waits for this channel to open. Nothing is sent on it: after a first ping, three missing ones would end the
    // connection, and browsers slow the timers of hidden pages.
    pc.createDataChannel("glyphoxa");
    pc.ontrack = ({ track: voices }) => {
      this.#audio.srcObject = new MediaStream([voices]);
      this.#audio.play().catch(() => this.#tell("muted", {}));
    };
    pc.onconnectionstatechange = () => this.#onState(pc);
    try {
      await pc.setLocalDescription(await pc.createOffer());
      await gathered(pc);
      // A player who left the seat meanwhile has no credentials, so no offer is made.
      if (pc !== this.#pc) return;
      const response = await fetch("/api/offer", {
        method: "POST",
        signal: AbortSignal.any([dialling.signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...this.#credentials, sdp: pc.localDescription.sdp, type: "offer" }),
      });
      const answer = await response.json();
      if (answer.error?.code === "no_consent") throw new NoConsent(answer.error.message);
      if (!response.ok) throw new Refused(answer.error ? reason(answer.error) : t("sound.why.away"));
      if (pc !== this.#pc) return;
      await pc.setRemoteDescription({ type: answer.type, sdp: answer.sdp });
    } catch (error) {
      if (pc === this.#pc && error instanceof NoConsent) this.#tell("no-consent", {});
      else if (pc === this.#pc) this.#failed(error instanceof Refused ? error.message : t("sound.why.away"));
    }
  }

  #onState(pc) {
    if (pc !== this.#pc) return;
    clearTimeout(this.#timer);
    if (pc.connectionState === "connected") {
      this.#tries = 0;
      this.#tell("state", { state: "on" });
    } else if (pc.connectionState === "failed") {
      this.#failed(t("sound.why.path"));
    } else if (pc.connectionState === "disconnected" || pc.connectionState === "closed") {
      this.#tell("state", { state: "trying" });
      this.#timer = setTimeout(() => this.#failed(t("sound.why.broke")), LOST_AFTER_MS);
    }
  }

  #failed(why) {
    this.#drop();
    if (!this.#credentials) return;
    const isGivenUp = this.#tries >= ATTEMPTS;
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.#tries++, LONGEST_WAIT_MS);
    this.#isWaiting = true;
    this.#tell("state", isGivenUp ? { state: "bad", why } : { state: "waiting", why, wait });
    if (!isGivenUp) this.#timer = setTimeout(() => this.#credentials && this.#dial(), wait);
  }

  // Retries now: the network is back, the page is visible again, or the player pressed the button.
  hurry() {
    if (!this.#credentials || !this.#isWaiting) return;
    this.#tries = 0;
    this.#dial();
  }

  #drop() {
    clearTimeout(this.#timer);
    const pc = this.#pc;
    this.#pc = null;
    this.#dialling?.abort();
    pc?.close();
    this.#audio.srcObject = null;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function gathered(pc) {
  if (pc.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((resolve) => {
    pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && resolve();
    setTimeout(resolve, GATHER_AT_MOST_MS);
  });
}
