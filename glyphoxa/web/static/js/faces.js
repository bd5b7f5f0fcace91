// A person's picture, else their initials on a colour that depends on the name.
import { element } from "./dom.js";
import { t } from "./words.js";

const TINTS = 12; // in app.css; white text is readable on each

// `portrait`: whether the server has a picture.
export function face({ id, name, portrait }) {
  if (!portrait) return initialsOf(name);
  const picture = element("img", { class: "avatar", alt: t("portrait.alt", { name }), src: `/api/portraits/${encodeURIComponent(id)}` });
  // The scene changed meanwhile, or the picture is damaged.
  picture.addEventListener("error", () => picture.replaceWith(initialsOf(name)));
  return picture;
}

// Hidden from screen readers: the name is next to it.
function initialsOf(name) {
  return element("span", { class: "avatar", "aria-hidden": "true", data: { tint: tint(name) } }, initials(name));
}

export function initials(name) {
  const words = name.trim().split(/\s+/);
  const letters = [words[0], words.length > 1 ? words.at(-1) : ""].map((word) => [...word][0] ?? "");
  return letters.join("").toLocaleUpperCase() || "?";
}

// Returns the same tint for the same name on every page.
export function tint(name) {
  let sum = 2166136261;
  for (const letter of name) sum = Math.imul(sum ^ letter.codePointAt(0), 16777619) >>> 0;
  return String(sum % TINTS);
}
