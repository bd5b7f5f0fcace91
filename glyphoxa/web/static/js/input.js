// Opens, measures and closes the browser's microphone. Sends no sound.
import { t } from "./words.js";

const WISHES = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
const REASONS = { NotAllowedError: "denied", NotFoundError: "none", NotReadableError: "busy" };

export class MicrophoneError extends Error {}

// `topic`: the prefix of the error texts in the catalogue. Throws MicrophoneError with a text for the player.
export async function openMicrophone(topic) {
  const failed = (reason, why = "") => new MicrophoneError(t(`${topic}.${reason}`, { why }));
  if (!navigator.mediaDevices?.getUserMedia) throw failed("insecure");
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: WISHES });
  } catch (error) {
    throw failed(REASONS[error.name] ?? "other", error.name);
  }
}

export function stop(microphone) {
  microphone?.getTracks().forEach((track) => track.stop());
}

// Reports the level of a stream about 15 times a second: `rms` and `peak`, each at most 1. Returns a function that stops it.
export function watchLevel(stream, onLevel) {
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: 512 });
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const rms = Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);
    onLevel({ rms, peak: samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0) });
  }, 66);
  return () => {
    clearInterval(timer);
    context.close();
  };
}
