// Sound over WebRTC. The connection is made when the player sits down, without a microphone: the NPCs are heard
// at once, and the microphone is only asked for when the player wants to talk.
import { openMicrophone, stop } from "./input.js";
import { reason, t } from "./words.js";

const FIRST_WAIT_MS = 1000; // doubled with each failure
const LONGEST_WAIT_MS = 30000;
const ATTEMPTS = 10; // three minutes in all; then the player says when
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
  #dialling = null; // ends the request of an offer that nobody waits for any more
  #microphone = null;
  #isTalking = false;
  #isMuted = false;
  #isHeard = false; // whether the player agreed to it; until then sound comes and none goes
  #asked = null; // the last call of talk(), until hush()
  #tries = 0;
  #timer = 0;
  #isWaiting = false; // for the next attempt, or for somebody to want one

  constructor(audio) {
    super();
    this.#audio = audio;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
  }

  get isTalking() {
    return this.#isTalking;
  }

  // While it is, silence goes to the server and the microphone stays open.
  set isMuted(isMuted) {
    this.#isMuted = isMuted;
    for (const track of this.#microphone?.getAudioTracks() ?? []) track.enabled = !isMuted;
  }

  // `iceServers`: by which the sound finds its way, as the server names them. `isHeard`: see `hear`.
  connect({ iceServers, isHeard, ...credentials }) {
    this.#isHeard = isHeard;
    this.#credentials = credentials;
    this.#iceServers = iceServers;
    this.#tries = 0;
    return this.#dial();
  }

  // From now on the server may, or may not, hear this seat: it is connected anew.
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

  // Asks for the microphone the first time. Throws MicrophoneError, in words for the player. Null when hush() called
  // it off meanwhile.
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
    // First of all the microphone: nothing that is awaited may keep it open.
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
    // The first medium must be audio; with consent both directions from the start, so that talking later needs no new
    // offer. Without it the server refuses an offer that would send.
    const track = this.#isTalking && this.#isHeard ? this.#microphone?.getAudioTracks()[0] : null;
    pc.addTransceiver(track ?? "audio", { direction: this.#isHeard ? "sendrecv" : "recvonly" });
    // The server waits for this channel to open. Nothing is sent on it: once a ping was, missing three would
    // count as gone, and browsers slow the timers of hidden pages.
    pc.createDataChannel("glyphoxa");
    pc.ontrack = ({ track: voices }) => {
      this.#audio.srcObject = new MediaStream([voices]);
      this.#audio.play().catch(() => this.#tell("muted", {}));
    };
    pc.onconnectionstatechange = () => this.#onState(pc);
    try {
      await pc.setLocalDescription(await pc.createOffer());
      await gathered(pc);
      // Whoever left the seat meanwhile has no credentials any more, and offers no sound.
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

  // The network is there again, the page is looked at, or the player wants it: not later, but now.
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
