// Single keys decide on facts. They work only while a fact has the focus, to prevent accidents.
const PLACE = "glyphoxa-review-place";
const facts = [...document.querySelectorAll(".fact")];
const DECIDES = { KeyA: "confirm", KeyC: "confirm", KeyR: "reject", KeyH: "hide" };

function focused() {
  return facts.indexOf(document.activeElement.closest(".fact"));
}

function go(to) {
  facts[Math.min(Math.max(to, 0), facts.length - 1)]?.focus();
}

addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  const at = focused();
  if (event.code === "KeyJ") go(at + 1);
  else if (event.code === "KeyK") go(at - 1);
  else if (at < 0) return;
  else if (event.code === "KeyX") facts[at].querySelector("input[type=checkbox]").click();
  else if (DECIDES[event.code]) {
    sessionStorage.setItem(PLACE, at);
    facts[at].querySelector(`form:has([value="${DECIDES[event.code]}"]) button`)?.click();
  } else return;
  event.preventDefault();
});

// After a decision, the next fact takes the place of the last one.
const place = sessionStorage.getItem(PLACE);
sessionStorage.removeItem(PLACE);
if (place !== null) go(Number(place));
