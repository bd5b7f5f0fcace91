"""Prints the evening to a terminal or file, turn by turn, in 80 columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from demo.played import SessionPlayed
from demo.report import Figures, since_speech_end
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.events import Degraded, MemoryChanged, NpcSpeaks, SceneChanged, TableEvent, TurnFinished
from glyphoxa.domain.turn_record import Outcome, TurnRecord
from glyphoxa.language.prompt_quotes import recalled_line

BAR_COLUMNS = 34
MAX_COLUMNS = 100
QUIET_OUTCOMES = frozenset({Outcome.NOT_ADDRESSED, Outcome.MERGED, Outcome.SUPERSEDED})
LABELS = {
    "transcript_final": "heard",
    "corrected": "corrected",
    "addressed": "addressed",
    "context_ready": "remembered",
    "first_token": "first word",
    "first_sentence": "first clause",
    "turn_end": "end of turn",
    "filler": "filler",
    "first_audio": "first audio",
    "audio_end": "last audio",
}


def changed_spans(before: str, after: str) -> list[tuple[str, bool]]:
    """Split `after` into pieces, each flagged if it differs from `before` by more than case or punctuation."""
    old, new = before.split(), after.split()
    plain_old, plain_new = [_plain(w) for w in old], [_plain(w) for w in new]
    spans: list[tuple[str, bool]] = []
    for tag, _, _, start, end in difflib.SequenceMatcher(a=plain_old, b=plain_new, autojunk=False).get_opcodes():
        if end > start:
            spans.append((" ".join(new[start:end]), tag != "equal"))
    return spans


def _plain(word: str) -> str:
    return re.sub(r"\W", "", word).casefold()


def waterfall(turn: TurnRecord) -> list[tuple[str, int, int]]:
    """Return (stage, from, to) in milliseconds after the end of speech, each stage starting where the last ended.

    The reply itself is left out, because its length would dwarf the other bars.
    """
    spans, before = [], 0
    for stage, at in since_speech_end(turn).items():
        if stage in ("speech_end", "audio_end"):
            continue
        spans.append((stage, before, at))
        before = max(before, at)
    return spans


class ConsoleReport:
    """Prints a session as it happens. Subscribe `told` to a table."""

    def __init__(self, campaign: Campaign, console: Console | None = None) -> None:
        self._campaign = campaign
        self._console = console or Console(highlight=False)
        self._n_turns = 0

    def open(self, number: int, title: str) -> None:
        self._print(Rule(Text(f"Session {number}: {title}", "bold")))

    def told(self, event: TableEvent) -> None:
        match event:
            case SceneChanged(scene=scene):
                place = self._campaign.entity(scene.location).name
                there = ", ".join(self._campaign.npc(npc).name for npc in scene.npcs)
                self._print(Text(f"— {place}, {scene.time_of_day}. Here: {there}.", "italic dim"))
            case NpcSpeaks(npc_name=name, text=text):
                self._print(Text.assemble(("  ♪ ", "green"), (f"{name}: ", "green"), (text, "dim")))
            case TurnFinished(turn):
                self._n_turns += 1
                self._print(turn_view(self._n_turns, turn, self._npc_name(turn)))
            case MemoryChanged(health):
                self._print(Text(f"  ! memory is {health.state}{f': {health.why}' if health.why else ''}", "yellow"))
            case Degraded(what=what):
                self._print(Text(f"  ! {what}", "yellow"))
            case _:
                pass

    def note(self, text: str) -> None:
        self._print(Text(text, "dim"))

    def summary(self, figures: Figures, sessions: Sequence[SessionPlayed]) -> None:
        self._print(Rule(Text("The evening in numbers", "bold")))
        self._print(summary_view(figures, sessions))

    def _print(self, what: RenderableType) -> None:
        self._console.print(what, width=min(self._console.width, MAX_COLUMNS))

    def _npc_name(self, turn: TurnRecord) -> str:
        return self._campaign.npc(turn.npc_id).name if turn.npc_id else ""


def turn_view(number: int, turn: TurnRecord, npc_name: str) -> Group:
    """Render one turn: speaker, transcript, addressed NPC and reason, recalled items, reply, timing."""
    wait = f"{turn.first_audio_ms / 1000:.2f} s" if turn.first_audio_ms is not None else ""
    head = Grid.grid(expand=True, padding=(0, 1))
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    addressed = f" → {npc_name}" if npc_name else ""
    reason = f"  {turn.address_reason}" if turn.address_reason else ""
    head.add_row(
        Text.assemble((f"{number:>2}  ", "dim"), (turn.speaker_name + addressed, "bold"), (reason, "dim")),
        Text.assemble((wait + "  ", "bold"), (str(turn.outcome).replace("_", " "), _colour(turn.outcome))),
    )
    body = Grid.grid(padding=(0, 1))
    body.add_column(justify="right", style="dim", width=8)
    body.add_column(overflow="fold")
    if turn.raw_text != turn.text:
        body.add_row("heard", Text(turn.raw_text, "dim"))
    body.add_row("said", _changed(turn.raw_text, turn.text))
    for recalled in turn.prompt.recalled:
        why = f"  ({recalled.source}{': ' + recalled.reason if recalled.reason else ''})"
        body.add_row("recalled", Text.assemble((recalled_line(recalled), "magenta"), (why, "dim")))
    for left_out in turn.prompt.omitted:
        body.add_row("left out", Text(left_out, "yellow"))
    if turn.reply or turn.reply_heard:
        body.add_row("reply", _reply(turn))
    if turn.error:
        body.add_row("error", Text(turn.error, "red"))
    parts: list[Grid | Padding] = [head, Padding(body, (0, 0, 0, 3))]
    if turn.outcome not in QUIET_OUTCOMES and (spans := waterfall(turn)):
        parts.append(Padding(_bars(spans), (0, 0, 1, 3)))
    return Group(*parts)


def _changed(raw: str, corrected: str) -> Text:
    pieces = changed_spans(raw, corrected)
    return Text(" ").join(Text(text, "bold cyan underline" if changed else "") for text, changed in pieces)


def _reply(turn: TurnRecord) -> Text:
    if turn.outcome is not Outcome.INTERRUPTED:
        return Text(turn.reply_heard or turn.reply, "green")
    unheard = turn.reply[len(turn.reply_heard) :].strip() if turn.reply.startswith(turn.reply_heard) else ""
    return Text.assemble((turn.reply_heard, "green"), (" ✂ ", "bold red"), (unheard, "dim strike"))


def _bars(spans: Sequence[tuple[str, int, int]]) -> Grid:
    end = max(1, *(to for _, _, to in spans))
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", width=12, no_wrap=True)
    grid.add_column(width=BAR_COLUMNS, no_wrap=True)
    grid.add_column(justify="right", style="dim", width=8, no_wrap=True)
    for stage, start, to in spans:
        begin, stop = (max(0, at) * BAR_COLUMNS // end for at in (start, to))
        bar = " " * min(begin, BAR_COLUMNS - 1) + "█" * max(1, stop - begin)
        grid.add_row(LABELS.get(stage, stage), Text(bar[:BAR_COLUMNS], "blue"), f"{to} ms")
    return grid


def _colour(outcome: Outcome) -> str:
    if outcome is Outcome.ANSWERED:
        return "green"
    return "red" if outcome in (Outcome.FAILED, Outcome.TIMED_OUT) else "yellow"


def summary_view(figures: Figures, sessions: Sequence[SessionPlayed]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim")
    grid.add_column(overflow="fold")
    for label, value in summary_rows(figures, sessions):
        grid.add_row(label, value)
    return grid


def summary_rows(figures: Figures, sessions: Iterable[SessionPlayed]) -> list[tuple[str, str]]:
    """Return the summary as (label, value) rows, for the terminal and the page."""
    names = f"{figures.names_right} of {figures.names_expected}"
    if figures.names_right_pct is not None:
        names += f" ({figures.names_right_pct:g} %)"
    rows = [
        ("first audio", _percentiles(figures.first_audio_p50_ms, figures.first_audio_p95_ms)),
        ("with fillers", _percentiles(figures.first_sound_p50_ms, figures.first_sound_p95_ms)),
        ("names recognised", names),
        (
            "names corrected",
            f"{figures.corrections} corrections; ordinary words changed: {figures.ordinary_words_changed}",
        ),
        ("recalled", f"{figures.recalls} facts and memories"),
        (
            "outcomes",
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(figures.outcomes.items()))
            or "none",
        ),
        ("stored in memory level 1", f"{figures.l1_entries} utterances"),
        ("remembered the next evening", "yes" if figures.recalled_across_sessions else "no"),
        ("leaked to the absent NPC", "YES" if figures.leaked_to_absent_npc else "no"),
    ]
    for session in sessions:
        if not session.complete:
            rows.append((f"session {session.number}", "stopped early"))
        rows += [(f"session {session.number}", note) for note in session.notes]
    return rows


def _percentiles(p50_ms: int | None, p95_ms: int | None) -> str:
    return f"p50 {_seconds(p50_ms)}, p95 {_seconds(p95_ms)}"


def _seconds(ms: int | None) -> str:
    return "-" if ms is None else f"{ms / 1000:.2f} s"
