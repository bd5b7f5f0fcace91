// Ctrl-K on any page of the desk: finds a page, an entity or a session by name, or presses a button of this page.
import { $, element } from "./dom.js";

const WAIT_MS = 120;
const MOST = 14;
const tabs = [...document.querySelectorAll(".tabs a")].map((link) => ({ title: link.textContent, url: link.href }));

const input = element("input", { type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Find a page or command", autocomplete: "off", spellcheck: "false" });
const list = element("ul", { id: "palette-list", role: "listbox", "aria-label": "Results" });
const dialog = element("dialog", { class: "palette", "aria-label": "Find" }, input, list);
document.body.append(dialog);

let choices = [];
let chosen = 0;
let asked = 0;
let timer = 0;

// Returns the commands of this page that need no input.
function buttons() {
  return [...document.querySelectorAll("main button[data-command]")].map((button) => ({ title: button.textContent.trim(), press: () => button.click() }));
}

function like(words) {
  const wanted = words.toLowerCase();
  return [...buttons(), ...tabs].filter(({ title }) => title.toLowerCase().includes(wanted));
}

function show(found) {
  choices = found.slice(0, MOST);
  chosen = 0;
  list.replaceChildren(...choices.map((choice, n) => element("li", { role: "option", id: `choice-${n}`, onclick: () => take(n) }, choice.title)));
  mark();
}

function mark() {
  [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === chosen)));
  if (choices.length) input.setAttribute("aria-activedescendant", `choice-${chosen}`);
  else input.removeAttribute("aria-activedescendant");
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function take(n) {
  const choice = choices[n];
  if (!choice) return;
  dialog.close();
  if (choice.press) choice.press();
  else location.assign(choice.url);
}

async function ask(words) {
  const mine = ++asked;
  let found = [];
  try {
    const response = await fetch(`/desk/find?${new URLSearchParams({ words })}`);
    if (response.ok) ({ found } = await response.json());
  } catch {
    // Pages and buttons are still found without the server.
  }
  if (mine === asked && dialog.open) show([...like(words), ...found]);
}

function open() {
  if (dialog.open) return;
  input.value = "";
  show(like(""));
  dialog.showModal();
}

input.addEventListener("input", () => {
  const words = input.value.trim();
  show(like(words));
  clearTimeout(timer);
  asked += 1;
  if (words && "remembers" in document.body.dataset) timer = setTimeout(() => ask(words), WAIT_MS);
});
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && choices.length) {
    chosen = (chosen + step + choices.length) % choices.length;
    mark();
  } else if (event.key === "Enter") take(chosen);
  else return;
  event.preventDefault();
});
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.code === "KeyK") {
    event.preventDefault();
    open();
  }
});
$("find").hidden = false;
$("find").addEventListener("click", open);
// On a phone the tabs are one row; scrolls to the current one.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
