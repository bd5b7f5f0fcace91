// The browser's microphone: asked for, measured and closed. Nothing here sends sound anywhere.
import { t } from "./words.js";

const WISHES = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
const REASONS = { NotAllowedError: "denied", NotFoundError: "none", NotReadableError: "busy" };

export class MicrophoneError extends Error {}

// `topic`: where the words for what may be wrong are in the catalogue. Throws MicrophoneError, in words for the player.
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

// How loud a stream is, told about 15 times a second until stopped: `rms` and `peak`, each 1 at most. Returns what stops it.
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
