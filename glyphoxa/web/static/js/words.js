// Every word that players read comes from one catalogue for each language (`words/`). The browser's languages decide
// which; who chooses another one on the page has it in this browser from then on.

const CHOSEN = "glyphoxa.language";
const LANGUAGES = { en: "English", de: "Deutsch" };
const LISTS = { en: "en-GB", de: "de" }; // "one, two and three", without a comma before the last

// A page that is written in one language only says so: its parts must not speak another.
export const language = document.documentElement.dataset.words ?? chosen();

const words = await (await fetch(`/static/words/${language}.json`)).json();

// The words of `key`, with `{names}` filled in. What is not there in words shows its key, and the table plays on.
export function t(key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (hole, name) => values[name] ?? hole);
}

// As many of it as `n` says: of `key.one` or `key.other`.
export function many(key, n, values = {}) {
  return t(`${key}.${new Intl.PluralRules(language).select(n)}`, { n, ...values });
}

export const has = (key) => key in words;

// `last` is "conjunction" or "disjunction".
export const list = (names, last) => new Intl.ListFormat(LISTS[language], { type: last }).format(names);

export const seconds = (ms) => (ms / 1000).toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// What the server refused. It has a word for each reason; one that only a program can cause comes as the server says it.
export function refusal(error) {
  const text = reason(error);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

// The same as a part of a sentence.
export function reason({ code, message, values }) {
  return (has(`error.${code}`) ? t(`error.${code}`, values) : message).replace(/\.$/, "");
}

function chosen() {
  const wishes = [localStorage.getItem(CHOSEN), ...navigator.languages].map((tag) => tag?.split("-")[0].toLowerCase());
  return wishes.find((tag) => Object.hasOwn(LANGUAGES, tag)) ?? "en";
}

// The page's own text names its keys; a button for each language that is not spoken takes the page there.
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
      location.reload(); // a tab keeps its seat, and what was typed, over a reload
    });
  }
}

translate();
