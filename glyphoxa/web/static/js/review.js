// Single keys decide on facts. They work only while a fact has the focus, to prevent accidents; a field names its key.
const PLACE = "glyphoxa-review-place";
const facts = [...document.querySelectorAll(".fact")];
const DECIDES = { KeyA: "confirm", KeyC: "confirm", KeyR: "reject", KeyD: "reject", KeyH: "hide" };

function focused() {
  return facts.indexOf(document.activeElement.closest(".fact"));
}

function go(to) {
  facts[Math.min(Math.max(to, 0), facts.length - 1)]?.focus();
}

addEventListener("keydown", (event) => {
  const at = focused();
  if (event.code === "Escape" && at >= 0) facts[at].focus();
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  if (event.code === "KeyJ") go(at + 1);
  else if (event.code === "KeyK") go(at - 1);
  else if (at < 0 && facts.length) return;
  else if (event.code === "KeyU") document.querySelector('form:has([value="undo"]) button')?.click();
  else if (event.code === "KeyX") facts[at]?.querySelector("input[type=checkbox]")?.click();
  else if (facts[at]?.querySelector(`[data-key="${event.code}"]`)) {
    const field = facts[at].querySelector(`[data-key="${event.code}"]`);
    field.closest("details").open = true;
    field.focus();
    field.select();
  } else if (DECIDES[event.code]) facts[at]?.querySelector(`form:has([value="${DECIDES[event.code]}"]) button`)?.click();
  else return;
  event.preventDefault();
});
addEventListener("submit", ({ target }) => sessionStorage.setItem(PLACE, Math.max(facts.indexOf(target.closest(".fact")), 0)));

// After a decision, the next fact takes the place of the last one.
const place = sessionStorage.getItem(PLACE);
sessionStorage.removeItem(PLACE);
if (place !== null) go(Number(place));
