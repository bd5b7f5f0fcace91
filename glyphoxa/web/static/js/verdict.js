// Judges a microphone by its levels: `speak` (unknown so far), `good`, `silent`, `quiet` or `loud`. A level of 1 is full
// scale.

const KNOWN_AFTER_MS = 4000; // without speech by then, report the problem
const VOICE_RMS = 0.01; // -40 dBFS: a recogniser takes it for speech, with some margin
const VOICED = 6; // levels with a voice: half a second
const NOTHING_PEAK = 0.0005; // -66 dBFS: a muted microphone; a quiet room is louder
const CLIPPED_PEAK = 0.98;
const CLIPPED = 4; // of the last `REMEMBERED`
const REMEMBERED = 45; // three seconds

export class Verdict {
  #begun = null;
  #voiced = 0;
  #peak = 0;
  #clipped = [];

  take({ rms, peak }, atMs) {
    this.#begun ??= atMs;
    this.#peak = Math.max(this.#peak, peak);
    if (rms >= VOICE_RMS) this.#voiced += 1;
    this.#clipped = [...this.#clipped, peak >= CLIPPED_PEAK].slice(-REMEMBERED);
    if (this.#clipped.filter(Boolean).length >= CLIPPED) return "loud";
    if (this.#voiced >= VOICED) return "good";
    if (atMs - this.#begun < KNOWN_AFTER_MS) return "speak";
    return this.#peak < NOTHING_PEAK ? "silent" : "quiet";
  }
}
