"""Writes `evening.html`: the evening and its sound in one self-contained file."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from demo.console import LABELS, changed_spans, summary_rows, waterfall
from demo.play import RATE_HZ
from demo.played import SessionPlayed
from demo.recordings import pcm16, resample, samples_of
from demo.report import Figures, line_of
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.turn_record import Outcome, Stage, TurnRecord
from glyphoxa.language.prompt_quotes import recalled_line

TEMPLATE = Path(__file__).with_name("report.html")
EMBEDDED_RATE_HZ = 16_000
LEAD_MS, TAIL_MS = 400, 500


def page(
    campaign: Campaign,
    figures: Figures,
    sessions: Sequence[SessionPlayed],
    sound: Mapping[int, bytes],
    *,
    titles: Mapping[int, str],
) -> str:
    """Return the page as HTML.

    Args:
        sound: The sound of each session, by session number: 24 kHz mono s16le.
        titles: Session titles, by session number.
    """
    parts = [
        f"<h1>{escape(campaign.name)}</h1>",
        '<p class="lead">Two players and two characters that listen and remember.</p>',
        "<dl>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in summary_rows(figures, sessions))
        + "</dl>",
    ]
    for session in sessions:
        parts.append(f"<h2>Session {session.number}: {escape(titles.get(session.number, ''))}</h2>")
        if pcm := sound.get(session.number):
            parts.append(f'<audio controls preload="auto" id="{_audio_id(session)}" src="{_data_url(pcm)}"></audio>')
        parts.append(timeline(campaign, session))
        parts += [turn_article(campaign, session, turn) for turn in session.turns]
    return TEMPLATE.read_text("utf-8").replace("{title}", escape(campaign.name)).replace("{body}", "\n".join(parts))


def timeline(campaign: Campaign, session: SessionPlayed) -> str:
    """Draw when each voice was audible: one lane for each voice, with overlaps."""
    lanes = dict.fromkeys([line.player for line in session.lines] + [spoke.npc for spoke in session.speech])
    if not lanes:
        return ""
    names = {str(p.id): p.name for p in campaign.players} | {str(n.id): n.name for n in campaign.npcs}
    width, left, lane_height = 860, 90, 24
    scale = (width - left) / max(1, session.ended_ms - session.began_ms)
    bars = [(line.player, line.began_ms, line.ended_ms, "--player") for line in session.lines]
    bars += [(spoke.npc, spoke.began_ms, spoke.ended_ms, "--npc") for spoke in session.speech]
    order = list(lanes)
    shapes = [f'<text x="0" y="{i * lane_height + 16}">{escape(names.get(v, v))}</text>' for i, v in enumerate(order)]
    for voice, began, ended, colour in bars:
        x, y = left + (began - session.began_ms) * scale, order.index(voice) * lane_height + 5
        shapes.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(1.5, (ended - began) * scale):.1f}" height="14" rx="3" '
            f'fill="var({colour})"/>'
        )
    foot = len(order) * lane_height + 14
    seconds = (session.ended_ms - session.began_ms) // 1000
    shapes += [
        f'<text x="{left + second * 1000 * scale:.1f}" y="{foot}">{second} s</text>'
        for second in range(0, max(1, seconds - 2), 10)  # a label at the very end would be cut off
    ]
    return f'<svg viewBox="0 0 {width} {foot + 6}" role="img" aria-label="Who spoke when">{"".join(shapes)}</svg>'


def turn_article(campaign: Campaign, session: SessionPlayed, turn: TurnRecord) -> str:
    npc = campaign.npc(turn.npc_id).name if turn.npc_id else ""
    outcome = escape(str(turn.outcome))
    wait = f" · {turn.first_audio_ms / 1000:.2f} s" if turn.first_audio_ms is not None else ""
    arrow = f'→ <span class="npc">{escape(npc)}</span>' if npc else ""
    parts = [
        f'<article><header><span class="who">{escape(turn.speaker_name)}</span> {arrow}'
        f'<span class="why">{escape(turn.address_reason)}</span>{_play_button(session, turn)}'
        f'<span class="chip {outcome}">{outcome.replace("_", " ")}{wait}</span></header>'
    ]
    if turn.raw_text != turn.text:
        parts.append(f'<p class="raw">heard: {escape(turn.raw_text)}</p>')
    parts.append(f"<p>{_marked(turn.raw_text, turn.text)}</p>")
    for recalled in turn.prompt.recalled:
        why = f"{recalled.source}{': ' + recalled.reason if recalled.reason else ''}"
        parts.append(f'<p class="recalled">{escape(recalled_line(recalled))} <small>{escape(why)}</small></p>')
    parts += [f'<p class="why">left out: {escape(left_out)}</p>' for left_out in turn.prompt.omitted]
    if turn.reply or turn.reply_heard:
        parts.append(f'<p><span class="npc">{escape(npc)}:</span> {_reply(turn)}</p>')
    if turn.error:
        parts.append(f'<p class="why">{escape(turn.error)}</p>')
    parts.append(_stages(waterfall(turn)))
    if turn.prompt.text:
        parts.append(f"<details><summary>Prompt</summary><pre>{escape(turn.prompt.text)}</pre></details>")
    return "\n".join(parts) + "</article>"


def _marked(raw: str, corrected: str) -> str:
    return " ".join(
        f"<mark>{escape(t)}</mark>" if changed else escape(t) for t, changed in changed_spans(raw, corrected)
    )


def _reply(turn: TurnRecord) -> str:
    if turn.outcome is not Outcome.INTERRUPTED or not turn.reply.startswith(turn.reply_heard):
        return escape(turn.reply_heard or turn.reply)
    return f"{escape(turn.reply_heard)} <del>{escape(turn.reply[len(turn.reply_heard) :].strip())}</del>"


def _stages(spans: Iterable[tuple[str, int, int]]) -> str:
    spans = list(spans)
    if not spans:
        return ""
    end = max(1, *(to for _, _, to in spans))
    rows = []
    for stage, start, to in spans:
        left, width = max(0, start) * 100 / end, max(0, to - max(0, start)) * 100 / end
        rows.append(
            f'<span class="stage">{escape(LABELS.get(stage, stage))}</span>'
            f'<span><b style="margin-left:{min(left, 99):.1f}%;width:{width:.1f}%"></b></span><span>{to} ms</span>'
        )
    return f'<div class="stages">{"".join(rows)}</div>'


def _play_button(session: SessionPlayed, turn: TurnRecord) -> str:
    """Return the button that plays a turn, from the player's line to the end of the reply."""
    span = turn_span_ms(session, turn)
    if span is None:
        return ""
    begin, end = (max(0, at - session.began_ms) / 1000 for at in span)
    return f'<button data-audio="{_audio_id(session)}" data-from="{begin:.2f}" data-to="{end:.2f}">▶ listen</button>'


def turn_span_ms(session: SessionPlayed, turn: TurnRecord) -> tuple[int, int] | None:
    """Return when a turn was audible (Unix epoch): the player's line and the reply. None for typed text."""
    speech_end = turn.stages.get(Stage.SPEECH_END)
    if speech_end is None:
        return None
    line = line_of(turn, session)
    began = line.began_ms if line is not None else speech_end - 3000
    ended = turn.stages.get(Stage.AUDIO_END, turn.stages.get(Stage.FIRST_AUDIO, speech_end))
    return began - LEAD_MS, max(ended, speech_end) + TAIL_MS


def _audio_id(session: SessionPlayed) -> str:
    return f"session-{session.number}"


def _data_url(pcm: bytes) -> str:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(EMBEDDED_RATE_HZ)
        out.writeframes(pcm16(resample(samples_of(pcm), from_hz=RATE_HZ, to_hz=EMBEDDED_RATE_HZ)))
    return "data:audio/wav;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
