// The volume of the NPCs, set by this player.
const VOLUME = "glyphoxa.volume"; // stored for this browser

export function keepVolume(slider, audio) {
  slider.value = localStorage.getItem(VOLUME) ?? 100;
  const set = () => (audio.volume = slider.value / 100);
  set();
  slider.addEventListener("input", () => {
    set();
    localStorage.setItem(VOLUME, slider.value);
  });
}
