import { Again } from "./again.js";
import { Captions } from "./captions.js";
import { Consent } from "./consent.js";
import { Counter } from "./counter.js";
import { $, element } from "./dom.js";
import { Lines } from "./lines.js";
import { Microphone } from "./microphone.js";
import { MicrophoneTest } from "./mictest.js";
import { noteOn, Thinking } from "./notes.js";
import { Pending } from "./pending.js";
import { drawSeats, People } from "./people.js";
import { Remembered } from "./remembered.js";
import { placeOf, Scenes } from "./scenes.js";
import { Search } from "./search.js";
import { Turns } from "./turns.js";
import { Voice } from "./voice.js";
import { keepVolume } from "./volume.js";
import { Wire } from "./wire.js";
import { has, list, many, refusal, t } from "./words.js";

const LOBBY_EVERY_MS = 3000;
const LOBBY_WITHIN_MS = 5000;
const FIGURES = "glyphoxa.figures"; // whether the waterfall is open; stored for this browser

const wire = new Wire();
const voice = new Voice($("voices"));
const soundAgain = new Again({ topic: "voice", act: () => voice.hurry() });
const captions = new Captions({ log: $("log"), said: $("said"), partials: $("partials"), empty: $("empty"), scroller: document.querySelector(".talk") });
const turns = new Turns({ list: $("turns"), empty: $("turns-empty") });
const people = new People();
const scenes = new Scenes((scene) => wire.send({ move: scene }));
const thinking = new Thinking($("thinking"));
const counter = new Counter({ input: $("say-text"), count: $("say-count"), told: $("say-told") });
const consent = new Consent({
  changed(isGiven) {
    if (!isGiven) microphone.off();
    voice.hear(isGiven);
    notice("consent", isGiven ? "" : t("consent.withdrawn"));
  },
  failed(why, agrees) {
    if (agrees) notice("consent", t("consent.not_given", { why }));
    else notice("consent", t("consent.not_withdrawn", { why }), { [t("consent.withdraw_again")]: () => consent.withdraw() });
  },
});
const remembered = new Remembered({ heardSince: () => consent.givenAt });
const microphone = new Microphone(voice, {
  mayOpen: () => consent.ask(),
  tried: () => notice("microphone", ""),
  failed(why) {
    notice("microphone", why);
    $("say-text").focus();
  },
});
const pending = new Pending($("pending"), { again: (id) => lines.again(id), forget: (id) => lines.forget(id) });
const lines = new Lines({
  send: (message) => wire.send(message),
  show(mine) {
    pending.show(mine);
    if (mine.length) captions.follow();
  },
});
let me = null;
let refused = null; // the player whose seat was refused
let lobbyTimer = 0;
let looking = null; // the lobby's pending request; cancelled when a seat is taken

// -- lobby

async function lobby() {
  outOfLobby();
  const asked = (looking = new AbortController());
  $("table").hidden = $("side-toggle").hidden = $("voice-state").hidden = true;
  $("lobby").hidden = false;
  skipTo("lobby-title", t("skip.lobby"));
  try {
    const table = await tableOf(asked);
    $("campaign").textContent = table.campaign.name;
    $("place").textContent = table.scene.location;
    const here = table.scene.npcs.map(({ name }) => name);
    $("cast").textContent = here.length ? waiting(table.scene.location, here) : "";
    $("lobby-hint").hidden = !table.seats.length;
    $("watch").hidden = table.seats.length > 0;
    $("desk").hidden = table.role !== "dm";
    const seats = table.players.filter(({ id }) => table.seats.includes(id));
    if (changed(seats)) drawSeats(seats, sit);
    if (table.players.some(({ id, taken }) => id === refused && !taken)) notice("seat", "");
    chip("wire-state", "on", t("chip.open"));
    notice("invitation", "");
  } catch (error) {
    if (asked !== looking) return;
    if (error instanceof NotInvited) {
      drawSeats([], sit);
      $("lobby-empty").hidden = $("lobby-hint").hidden = $("watch").hidden = true;
      notice("invitation", error.message);
    }
    chip("wire-state", "bad", t(error instanceof NotInvited ? "chip.invited" : "chip.gone"));
  }
  if (asked === looking) lobbyTimer = setTimeout(lobby, LOBBY_EVERY_MS);
}

class NotInvited extends Error {}

async function tableOf(asked) {
  const tooLate = setTimeout(() => asked.abort(), LOBBY_WITHIN_MS);
  try {
    const response = await fetch("/api/table", { signal: asked.signal });
    const answer = await response.json();
    if (response.status === 401) throw new NotInvited(refusal(answer.error));
    return answer;
  } finally {
    clearTimeout(tooLate);
  }
}

function outOfLobby() {
  clearTimeout(lobbyTimer);
  looking?.abort();
  looking = null;
}

let drawn = "";
function changed(players) {
  const now = JSON.stringify(players);
  const isNew = now !== drawn;
  drawn = now;
  return isNew;
}

function sit(player) {
  outOfLobby();
  notice("seat", "");
  wire.open(player);
}

// Watch without a seat.
function watch() {
  outOfLobby();
  wire.watch();
}

function leave() {
  microphone.off();
  consent.end();
  remembered.end();
  voice.hangUp();
  wire.close();
  drawn = "";
  refused = null;
  for (const topic of ["server", "voice", "memory", "paused", "consent", "error"]) notice(topic, "");
  lobby();
  $("lobby-title").focus();
}

// -- events of the table

const on = {
  welcome({ player, ticket, ice_servers: iceServers, consent: asked, table, history }) {
    const sitsDown = !$("lobby").hidden;
    $("lobby").hidden = true;
    $("table").hidden = $("side-toggle").hidden = $("voice-state").hidden = false;
    skipTo("say-text", t("skip.table"));
    me = player?.id ?? null;
    $("say").hidden = me === null;
    $("voice-state").hidden = me === null;
    counter.limit = table.max_text_length;
    people.show(table, me);
    scenes.show(table);
    memory(table.memory);
    paused(table.is_paused);
    captions.begin({ me, players: table.players, npcs: table.scene.npcs });
    turns.clear();
    thinking.clear();
    captions.replay(() => history.forEach(replay));
    usable(true);
    if (me === null) return;
    consent.begin(me, asked);
    remembered.begin(me, table.lists_memory);
    lines.begin({ player: me, session: table.session });
    // On a phone, focus in the text box would open the keyboard.
    if (sitsDown) $(matchMedia("(pointer: coarse)").matches ? "talk" : "say-text").focus();
    voice.connect({ player: player.id, ticket, iceServers, isHeard: consent.isGiven });
  },
  seats: ({ players }) => people.players(players),
  speech_started(event) {
    people.speaks(event.player, true);
    if (!lines.isOwn(event)) captions.started(event);
  },
  partial: (event) => captions.partial(event),
  turn_ended(event) {
    people.speaks(event.player, false);
    if (!lines.isOwn(event)) captions.ended(event);
  },
  nothing_said(event) {
    people.speaks(event.player, false);
    captions.nothing(event);
  },
  utterance(event) {
    lines.kept(event.line);
    captions.kept(event);
  },
  kept: ({ line }) => lines.kept(line),
  revised: (event) => captions.revised(event),
  retracted: (event) => captions.retracted(event),
  npc_thinks(event) {
    thinking.begins(event);
    people.thinks(event);
    captions.follow();
  },
  npc_speaks(event) {
    thinking.ends(event.turn);
    thinking.heard(event);
    people.thought(event.turn);
    people.speaks(event.npc, true);
    captions.npcSpeaks(event);
  },
  npc_silent(event) {
    thinking.silent(event);
    people.speaks(event.npc, false);
    captions.npcSilent(event);
  },
  turn(event) {
    thinking.ends(event.id);
    people.thought(event.id);
    thinking.silent({ turn: event.id });
    captions.over(event);
    turns.add(event);
    const note = noteOn(event, { me, here: people.here });
    if (note) captions.note(note, event.utterance);
  },
  scene({ scene }) {
    people.scene(scene);
    captions.meet(scene.npcs);
    scenes.moved(scene);
    captions.divider(movedTo(scene));
  },
  whisper: (event) => captions.whisper(event),
  getting_ready: ({ npcs }) => notice("getting-ready", npcs.length ? gettingReady(npcs) : ""),
  memory: (health) => memory(health),
  paused: ({ is_paused }) => paused(is_paused),
  session_ends() {
    leave();
    notice("seat", t("ended.session"));
  },
  degraded: ({ what, npc }) => notice(`degraded:${what}:${npc}`, trouble(what, npc)),
  error: (event) => lines.refused(event.line, refusal(event), event.code) || notice("error", refusal(event)),
};

function handle(event) {
  on[event.type]?.(event);
}

// Returns no name for a place whose name is not public.
const movedTo = (scene) => (placeOf(scene) ? t("scene.moved", { place: placeOf(scene) }) : t("scene.moved_on"));

// The welcome contains the current scene; the history contains earlier ones.
function replay(event) {
  if (event.type === "scene") captions.divider(movedTo(event.scene));
  else handle(event);
}

wire.addEventListener("message", ({ detail }) => handle(detail));
wire.addEventListener("state", ({ detail }) => {
  if (detail.state === "on") {
    chip("wire-state", "on", t("chip.on"));
    notice("server", "");
  } else if (detail.state === "gone") {
    chip("wire-state", "bad", t("chip.again"));
    notice("server", detail.why ?? t("server.gone"));
    usable(false);
    voice.hangUp();
  } else {
    chip("wire-state", "trying", t("chip.trying"));
  }
});
wire.addEventListener("ended", ({ detail }) => {
  leave();
  refused = detail.player;
  notice("seat", detail.message);
});

// -- sound

voice.addEventListener("state", ({ detail: { state, why, wait } }) => {
  const isWaiting = state === "waiting";
  const shown = isWaiting ? "trying" : state;
  chip("voice-state", shown, t(shown === "bad" ? "sound.off" : `sound.${shown}`));
  $("voice-state").title = why ?? "";
  if (isWaiting) return soundAgain.waits(t("sound.again", { why }), wait);
  if (state === "trying") return soundAgain.tries();
  soundAgain.over();
  const isGivenUp = state === "bad";
  const text = isGivenUp ? t("sound.given_up", { why }) : "";
  notice("voice", text, isGivenUp ? { [t("again.button")]: () => voice.hurry() } : {});
});
voice.addEventListener("no-consent", () => consent.lost());
voice.addEventListener("muted", () => notice("muted", t("sound.muted")));
voice.addEventListener("microphone-lost", () => {
  microphone.off();
  notice("microphone", t("mic.lost"));
});
addEventListener("pointerdown", () => unmute());
addEventListener("keydown", () => unmute());

function unmute() {
  if ($("voices").srcObject && $("voices").paused) $("voices").play().then(() => notice("muted", ""), () => {});
}

// -- words and scenes

$("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("say-text").value.trim();
  if (!text || counter.refuses()) return;
  lines.say(text);
  $("say-text").value = "";
  counter.show();
});
$("leave").addEventListener("click", leave);
$("watch").addEventListener("click", watch);
$("side-toggle").addEventListener("click", () => {
  $("side-toggle").setAttribute("aria-expanded", String($("side").classList.toggle("open")));
});
$("figures").open = localStorage.getItem(FIGURES) === "open";
$("figures").addEventListener("toggle", () => localStorage.setItem(FIGURES, $("figures").open ? "open" : "closed"));

keepVolume($("volume"), $("voices"));
new MicrophoneTest({ begins: () => microphone.off() });
new Search({ input: $("search"), lines: $("said"), told: $("search-told") });

// -- small things

// Nothing is disabled, because it would lose the focus. Typed lines wait until they can be sent.
function usable(isUsable) {
  $("talk").setAttribute("aria-disabled", String(!isUsable));
  scenes.isUsable = isUsable;
}

function waiting(place, here) {
  const names = list(here, "conjunction");
  return place ? t("lobby.cast_at", { place, names }) : t("lobby.cast", { names });
}

function skipTo(id, text) {
  $("skip").href = `#${id}`;
  $("skip").textContent = text;
}

function chip(id, state, text) {
  $(id).dataset.state = state;
  $(id).textContent = text;
}

// On a small machine, an NPC that appears for the first time needs a while to read its persona.
function gettingReady(npcs) {
  return many("ready", npcs.length, { names: list(npcs, "conjunction") });
}

// While long-term memory is unavailable, play continues and utterances are stored on disk.
function memory({ state, since_ms }) {
  if (state !== "degraded") return notice("memory", "");
  const since = new Date(since_ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  notice("memory", t("memory.away", { since }));
}

function paused(isPaused) {
  people.paused(isPaused);
  notice("paused", isPaused ? t("paused") : "");
}

// The game master's log has the cause. Players see what it means for them.
function trouble(what, npc) {
  const key = `trouble.${what}${npc ? "_npc" : ""}`;
  return t(has(key) ? key : has(`trouble.${what}`) ? `trouble.${what}` : "trouble.other", { npc });
}

// Shows one notice per topic; an empty text removes it.
// `actions`: button texts and what the buttons do.
function notice(topic, text, actions = {}) {
  $("notices").querySelector(`[data-topic="${CSS.escape(topic)}"]`)?.remove();
  if (!text) return;
  const item = element("p", { class: "notice", data: { topic } }, element("span", {}, text));
  const dismiss = () => {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    (next?.querySelector("button") ?? $($("lobby").hidden ? "say-text" : "lobby-title")).focus();
  };
  for (const [words, act] of Object.entries(actions)) {
    item.append(element("button", { type: "button", onclick: () => (dismiss(), act()) }, words));
  }
  item.append(element("button", { type: "button", onclick: dismiss }, t("notice.dismiss")));
  $("notices").append(item);
}

if (wire.before) sit(wire.before);
else lobby();
