// How loud the NPCs are, as this player chose it.
const VOLUME = "glyphoxa.volume"; // of this browser, until it is chosen otherwise

export function keepVolume(slider, audio) {
  slider.value = localStorage.getItem(VOLUME) ?? 100;
  const set = () => (audio.volume = slider.value / 100);
  set();
  slider.addEventListener("input", () => {
    set();
    localStorage.setItem(VOLUME, slider.value);
  });
}
