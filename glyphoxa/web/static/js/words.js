// All texts that players read come from one catalogue per language (`words/`). The browser's languages decide which one.
// A choice on the page overrides it and is stored for this browser.

const CHOSEN = "glyphoxa.language";
const LANGUAGES = { en: "English", de: "Deutsch" };
const LISTS = { en: "en-GB", de: "de" }; // "one, two and three", without a comma before the last

// A page in a single language declares it, so that its parts use no other.
export const language = document.documentElement.dataset.words ?? chosen();

const words = await (await fetch(`/static/words/${language}.json`)).json();

// Returns the text of `key` with `{names}` filled in. A missing text shows its key.
export function t(key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (hole, name) => values[name] ?? hole);
}

// Returns the singular or plural text: `key.one` or `key.other`.
export function many(key, n, values = {}) {
  return t(`${key}.${new Intl.PluralRules(language).select(n)}`, { n, ...values });
}

export const has = (key) => key in words;

// `last` is "conjunction" or "disjunction".
export const list = (names, last) => new Intl.ListFormat(LISTS[language], { type: last }).format(names);

export const seconds = (ms) => (ms / 1000).toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// Returns the text for a refusal. A reason that only a program can cause has the server's own text.
export function refusal(error) {
  const text = reason(error);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

// Returns the same text as a part of a sentence.
export function reason({ code, message, values }) {
  return (has(`error.${code}`) ? t(`error.${code}`, values) : message).replace(/\.$/, "");
}

function chosen() {
  const wishes = [localStorage.getItem(CHOSEN), ...navigator.languages].map((tag) => tag?.split("-")[0].toLowerCase());
  return wishes.find((tag) => Object.hasOwn(LANGUAGES, tag)) ?? "en";
}

// Fills in the texts of the page, and a button for each other language.
function translate() {
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-t-label]")) node.setAttribute("aria-label", t(node.dataset.tLabel));
  for (const node of document.querySelectorAll("[data-t-placeholder]")) node.placeholder = t(node.dataset.tPlaceholder);
  for (const button of document.querySelectorAll("[data-language]")) {
    button.hidden = button.dataset.language === language;
    button.textContent = LANGUAGES[button.dataset.language];
    button.addEventListener("click", () => {
      localStorage.setItem(CHOSEN, button.dataset.language);
      location.reload(); // a tab keeps its seat and typed text across a reload
    });
  }
}

translate();
