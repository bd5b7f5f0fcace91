"""Read character cards and lorebooks of text role-play: JSON, PNG and .charx of SillyTavern and similar programs.

A card (version 1, 2 or 3) is the JSON of one character. A PNG holds it as base64 in a text chunk. A lorebook is a list
of entries, each with the keys that bring it up in a chat. All of it is text: no macro, script or pattern is run.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from itertools import islice, pairwise
from typing import Any, Final

from glyphoxa.config.campaign_text import as_meant
from glyphoxa.dm.source_world import SourceDocument, SourceText, SourceWorld, name_of
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.domain.turn_record import Asked, Character
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.language.sentences import shortened
from glyphoxa.language.text import language_of
from glyphoxa.plugins.imports.files import SourceFiles, fields_of, json_of
from glyphoxa.plugins.imports.html_text import html_text
from glyphoxa.plugins.imports.labels import name_mark
from glyphoxa.plugins.imports.markdown_text import note_text, texts_of
from glyphoxa.prompt.wording import wording

_VALID: Final = "valid are a character card (PNG, .charx, JSON with `name` and `description`) or JSON with `entries`"
_MOST_BYTES, _MOST_PIXELS = 64 << 20, 8_192
_LONGEST, _LONGEST_SAID, _MOST_EXAMPLES = 20_000, 240, 6  # characters of a text, of a line of an example
_PERSONA: Final = ("personality", "description", "scenario")
_EXAMPLES: Final = ("first_mes", "mes_example")
_FOR_THE_MODEL: Final = ("system_prompt", "post_history_instructions")
_KINDS: Final = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}
_QUOTES: Final = str.maketrans(dict.fromkeys("“”„«»", '"'))
_SPEECH_ENDS: Final = tuple(".!?…,–—~")  # a name in quotation marks is not said


def read_cards(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: It is no card and no lorebook, is damaged, or a field has a wrong type."""
    file = "card.json" if "card.json" in files.names else next(iter(files.names), "")
    if not file or (len(files.names) > 1 and file != "card.json"):
        raise InvalidInput(f"{files.path} has {len(files.names):,} files: name one of them; {_VALID}")
    content = fields_of(_json(file, files))
    fields = fields_of(content.get("data")) or content
    if "entries" in fields:
        name = name_of(_field(fields, str, file, "name")) or files.path.stem
        documents, remarks = _entries(fields, file, name)
    elif fields.keys().isdisjoint((*_PERSONA, *_EXAMPLES)):
        raise InvalidInput(f"{files.path} is JSON of another kind: {shown(', '.join(fields)) or 'no object'}; {_VALID}")
    elif not (name := name_of(_field(fields, str, file, "name"))):
        raise InvalidInput(f"{files.path}: `name` is empty: write the character's name there")
    else:
        card, remarks = _card(fields, file, name)
        pictures = [each for each in files.names if each.startswith("assets/icon/") or each.lower().endswith("png")]
        entries, left_out = _entries(_field(fields, dict, file, "character_book"), file, name)
        documents, remarks = [replace(card, portrait=min(pictures, default="")), *entries], [*remarks, *left_out]
    if not documents:
        raise InvalidInput(f"{files.path}: no entry with a text in it; {'; '.join(remarks) or _VALID}")
    return SourceWorld("card", files.path.stem, name, tuple(documents), tuple(remarks))


def _json(file: str, files: SourceFiles) -> object:
    content = files.read(file, most=_MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"{files.path} has more than {_MOST_BYTES >> 20} MB, which no card has")
    if content.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")[:1] in (b"{", b"["):
        return json_of(content, file)
    from PIL.PngImagePlugin import PngImageFile

    try:
        with PngImageFile(BytesIO(content)) as picture:
            if max(picture.size) > _MOST_PIXELS:
                raise InvalidInput(f"more than {_MOST_PIXELS:,} pixels in a row or column")
            picture.verify()  # reading the texts does not check those behind the pixels
        with PngImageFile(BytesIO(content)) as picture:
            texts = {name.casefold(): str(text) for name, text in picture.text.items()}
        card = base64.b64decode(texts.get("ccv3") or texts["chara"])
    except KeyError:
        raise InvalidInput(f"{files.path} has no card: no text chunk `ccv3` or `chara`; {_VALID}") from None
    except Exception as error:  # what a decoder raises for a damaged picture is not documented
        why = f"no JSON, and no whole PNG with a card in base64: {shown(str(error))}"
        raise InvalidInput(f"{files.path} is {why}; {_VALID}") from None
    return json_of(card, f"the card in {file}")


def _field(fields: Mapping[str, Any], kind: type, place: str, *names: str) -> Any:
    """Return the first field of these that is not empty. Raises: InvalidInput: It has another type."""
    for name in names:
        value = fields.get(name)
        if value is not None and value not in ("", [], {}):
            if not isinstance(value, kind):
                raise InvalidInput(
                    f"{place}: `{name}` is {_KINDS.get(type(value), 'a number')}; valid is {_KINDS[kind]}"
                )
            return value
    return kind()


def _card(fields: Mapping[str, Any], file: str, name: str) -> tuple[SourceDocument, list[str]]:
    """Return the document of a person, with remarks."""
    texts = {each: _field(fields, str, file, each) for each in (*_PERSONA, *_EXAMPLES, *_FOR_THE_MODEL)}
    called = name_of(_field(fields, str, file, "nickname")) or name
    language = language_of(" ".join(texts.values())[:_LONGEST]) or "en"
    plain = {each: _plain(texts[each], called, language) for each in _PERSONA}
    persona = [SourceText(f"{text.rstrip('.')}.", True, each, "persona") for each, text in plain.items() if text]
    spoken = enumerate(islice(_exchanges(texts, name, called, language), _MOST_EXAMPLES), 1)
    examples = [SourceText(text, True, f"example {n}", "example") for n, text in spoken]
    notes = SourceText(_plain(_field(fields, str, file, "creator_notes"), called, language), True, "creator notes")
    depth = fields_of(_field(fields, dict, file, "extensions").get("depth_prompt"))
    for_model = {each: texts[each] for each in _FOR_THE_MODEL} | {"depth_prompt": _field(depth, str, file, "prompt")}
    remarks = [f"`{field}` is for a model, and left out: {shown(text)}" for field, text in for_model.items() if text]
    card = SourceDocument("card", name, "npc", "character card", file, (), (called,), hidden=False)
    return replace(card, texts=(*persona, *examples, notes)), remarks


def _plain(text: str, name: str, language: str) -> str:
    """Return a text with names for macros, and without tags, scripts and comments."""
    closed, mark, rest = text[:_LONGEST].rpartition("-->")
    text = closed + mark + rest.partition("<!--")[0]  # a comment that never ends
    return html_text(as_meant(text, char=name, language=language)[0]).visible


def _exchanges(texts: Mapping[str, str], name: str, called: str, language: str) -> Iterator[str]:
    """Yield the greeting, then the answers to a player in the example conversations, each after what it answers."""
    own = {"char", "bot", name.casefold(), called.casefold()}
    turns = [(False, wording(language).examples[0].said.format(name=called)), (True, texts["first_mes"])]
    for line in texts["mes_example"][:_LONGEST].splitlines():
        label, _, said = line.partition(":")
        speaker = label.strip("{}<>* \t").casefold()
        if speaker in own or speaker in ("user", "you"):
            turns.append((speaker in own, said))
        elif speaker != "start":
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line}")
    for (is_asked_by_own, asked), (is_own, reply) in pairwise(turns):
        said, answer = (_spoken(_plain(text, called, language), name) for text in (asked, reply))
        if is_own and not is_asked_by_own and said and answer:
            yield f"{said}\n{answer}"


def _spoken(text: str, name: str) -> str:
    """Return the words somebody says in a text with narration: what is quoted, otherwise all but stage directions."""
    quoted = (each.strip() for each in text.translate(_QUOTES).split('"')[1::2])
    said = " ".join(each for each in quoted if each.endswith(_SPEECH_ENDS)) or text
    return shortened(ReplyCheck(Character(name), Asked()).clean(" ".join(said.split())).text, _LONGEST_SAID)


def _entries(book: Mapping[str, Any], file: str, title: str) -> tuple[list[SourceDocument], list[str]]:
    """Return the entries of a lorebook. A key that only one entry has is another name of it."""
    listed = book.get("entries")  # World Info of SillyTavern has them by their numbers
    listed = list(listed.values()) if isinstance(listed, dict) else _field(book, list, file, "entries")
    documents: dict[str, SourceDocument] = {}
    left_out: list[str] = []
    for n, each in enumerate(listed, 1):
        place = f"{file}: entry {n}"
        entry = _field({"entry": each}, dict, place, "entry")
        is_on = entry.get("enabled") is None or _field(entry, bool, place, "enabled")
        keys = () if _field(entry, bool, place, "use_regex") else _field(entry, list, place, "keys", "key")
        names = [name_of(key) for key in keys if isinstance(key, str) and key[:1] != "/" and "{{" not in key]
        written = name_of(_plain(_field(entry, str, place, "name", "comment"), title, "en"))
        name = written or next(filter(None, names), f"{title} {n}")
        lines = _field(entry, str, place, "content").splitlines()
        content = "\n".join(line for line in lines if not line.startswith("@@"))  # such as `@@depth 4`
        note = note_text(_plain(content, title, language_of(content[:_LONGEST]) or "en"))
        if not is_on or _field(entry, bool, place, "disable") or not (note.visible or note.hidden):
            left_out.append(name)
            continue
        key = f"entry {name}" if f"entry {name}" not in documents else f"entry {name} #{n}"
        own = (key, name, "concept", "lorebook entry", file, (title,), tuple(names))
        why = name_mark((name,), ()) or note.mark
        documents[key] = SourceDocument(*own, hidden=bool(why), texts=tuple(texts_of(note)), why=why)
    n_with = Counter(each for one in documents.values() for each in {*map(str.casefold, (one.name, *one.aliases))})
    n_with[title.casefold()] += 1
    for key, one in documents.items():
        documents[key] = replace(one, aliases=tuple(each for each in one.aliases if n_with[each.casefold()] == 1))
    return [*documents.values()], [f"left out, disabled or empty: {shown(', '.join(left_out))}"] if left_out else []
