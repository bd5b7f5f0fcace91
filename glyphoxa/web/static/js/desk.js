// The live page of the desk: the transcript as it grows, and commands for every NPC.
import { Captions } from "./captions.js";
import { $, element } from "./dom.js";
import { noteOn, Thinking } from "./notes.js";
import { Turns } from "./turns.js";
import { placeOf } from "./scenes.js";
import { Wire } from "./wire.js";
import { t } from "./words.js";

const COMMAND_WITHIN_MS = 10000;
const MOST_KEYS = 9;

const wire = new Wire();
const captions = new Captions({ log: $("log"), said: $("said"), partials: $("partials"), empty: $("empty"), scroller: document.querySelector(".talk") });
const turns = new Turns({ list: $("turns"), empty: $("turns-empty") });
const thinking = new Thinking($("thinking"));
const remembers = "remembers" in document.body.dataset;
let here = [];

function cardOf(npc) {
  return document.querySelector(`.npc-card[data-npc="${CSS.escape(npc)}"]`);
}

function stateOf(npc, words) {
  const card = cardOf(npc);
  if (card) card.querySelector(".npc-state").textContent = words;
}

function show(scene) {
  here = scene.npcs;
  $("scene").value = scene.id;
  for (const card of document.querySelectorAll(".npc-card")) {
    const at = here.findIndex(({ id }) => id === card.dataset.npc);
    card.toggleAttribute("data-here", at >= 0);
    const key = at >= 0 && at < MOST_KEYS ? at + 1 : "";
    card.querySelector("kbd").textContent = key;
    card.querySelector("[data-command=readdress]").setAttribute("aria-keyshortcuts", key);
    stateOf(card.dataset.npc, at >= 0 ? "listening" : "elsewhere");
  }
  captions.meet(scene.npcs);
}

const on = {
  welcome({ table, history }) {
    captions.begin({ me: null, players: table.players, npcs: table.scene.npcs });
    turns.clear();
    thinking.clear();
    show(table.scene);
    if (table.is_paused) chip("trying", "paused");
    captions.replay(() => history.forEach((event) => (event.type === "scene" ? moved(event.scene) : handle(event))));
  },
  speech_started: (event) => captions.started(event),
  partial: (event) => captions.partial(event),
  turn_ended: (event) => captions.ended(event),
  nothing_said: (event) => captions.nothing(event),
  utterance: (event) => captions.kept(event),
  revised: (event) => captions.revised(event),
  retracted: (event) => captions.retracted(event),
  npc_thinks(event) {
    thinking.begins(event);
    stateOf(event.npc, "thinking");
  },
  npc_speaks(event) {
    thinking.ends(event.turn);
    thinking.heard(event);
    stateOf(event.npc, "speaking");
    captions.npcSpeaks(event);
  },
  npc_silent(event) {
    thinking.silent(event);
    stateOf(event.npc, "listening");
    captions.npcSilent(event);
  },
  turn(event) {
    thinking.ends(event.id);
    thinking.silent({ turn: event.id });
    captions.over(event);
    turns.add(event);
    captions.note(why(event), event.utterance);
  },
  scene({ scene }) {
    show(scene);
    moved(scene);
  },
  paused: ({ is_paused }) => chip(is_paused ? "trying" : "on", is_paused ? "paused" : "live"),
  in_force({ in_force, done }) {
    $("in-force").textContent = in_force;
    answer(done);
  },
  session_ends: () => answer(`The session is over.${remembers ? ` Decide what to keep of it: glyphoxa wrap-up ${$("answer").dataset.session}` : ""}`),
  error: ({ message }) => answer(message),
};

function handle(event) {
  on[event.type]?.(event);
}

function moved(scene) {
  captions.divider(placeOf(scene) ? t("scene.moved", { place: placeOf(scene) }) : t("scene.moved_on"));
}

// Whom the line addressed, why, and links to the whole turn and to the line.
function why(event) {
  const whom = event.npc ? `to ${event.npc}` : (noteOn(event, { me: event.player, here: here.map(({ name }) => name) }) ?? "to nobody");
  const words = event.why ? `${whom} (${event.why}) ` : `${whom} `;
  const links = [element("a", { href: `/desk/turns/${encodeURIComponent(event.id)}` }, "why")];
  if (event.utterance && remembers) links.push(" ", element("a", { href: `/desk/lines/${encodeURIComponent(event.utterance)}` }, "correct"));
  return element("span", {}, words, ...links);
}

wire.addEventListener("message", ({ detail }) => handle(detail));
wire.addEventListener("state", ({ detail: { state } }) => chip(state === "on" ? "on" : state === "gone" ? "bad" : "trying", { on: "live", gone: "reconnecting…", trying: "connecting…" }[state]));
wire.addEventListener("ended", ({ detail }) => {
  chip("bad", "not connected");
  answer(detail.message);
});

function chip(state, text) {
  $("wire-state").dataset.state = state;
  $("wire-state").textContent = text;
}

function answer(text) {
  $("answer").hidden = false;
  $("answer").textContent = text;
}

async function command(told) {
  try {
    const response = await fetch("/desk/command", { method: "POST", body: new URLSearchParams(told), signal: AbortSignal.timeout(COMMAND_WITHIN_MS) });
    const { done, in_force, error } = await response.json();
    answer(error?.message ?? done);
    if (in_force) $("in-force").textContent = in_force;
    return !error;
  } catch {
    answer("The table did not answer. Check whether the command took effect before you try again.");
    return false;
  }
}

for (const button of document.querySelectorAll("button[data-command]")) {
  const { command: what, npc } = button.dataset;
  button.addEventListener("click", () => command(npc ? { do: what, npc } : { do: what }));
}
for (const form of document.querySelectorAll("form[data-command]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const isDone = await command({ do: form.dataset.command, ...Object.fromEntries(new FormData(form)) });
    if (isDone && form.elements.text) form.elements.text.value = "";
  });
}
$("rounds").addEventListener("input", ({ target }) => {
  target.labels[0].querySelector("output").textContent = target.value;
});
$("move").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!wire.send({ move: $("scene").value })) answer("The page is not connected. Try again in a moment.");
});
addEventListener("keydown", (event) => {
  if (event.altKey && event.shiftKey && event.code === "KeyS") command({ do: "stop" });
  if (event.altKey || event.ctrlKey || event.metaKey || event.repeat || event.target.matches("input, textarea, select")) return;
  if (event.key === "0" || (/^[1-9]$/.test(event.key) && here[event.key - 1])) readdress(here[event.key - 1]?.id);
});

// Says that the line in focus, or else the last one, was for this NPC; without one: for nobody.
function readdress(npc) {
  const line = document.activeElement.closest("[data-utterance]")?.dataset.utterance;
  command({ do: "readdress", ...(npc && { npc }), ...(line && { line }) });
}

wire.watch();
