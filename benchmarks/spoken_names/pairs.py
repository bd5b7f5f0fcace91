"""Wrong forms and clean sentences for `benchmarks.names`, from the transcripts of the spoken set."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.spoken_names.alignment import Span, align, heard_for, tokens, words_of
from benchmarks.spoken_names.dataset import (
    SPLITS,
    Heard,
    Sentence,
    SpokenName,
    heard_path,
    mention_spans,
    read_heard,
    read_names,
    read_sentences,
    settings_in,
)

# A recogniser that wrote one of these for a name heard no name at all: nothing can be learned from it.
_FUNCTION_WORDS = frozenset(
    (
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "do", "for", "from", "had", "has", "have", "he",
        "her", "him", "his", "i", "if", "in", "is", "it", "me", "my", "no", "not", "of", "on", "or", "our", "she",
        "so", "that", "the", "their", "them", "there", "they", "this", "to", "up", "us", "was", "we", "were",
        "what", "who", "will", "with", "would", "yes", "you", "your",
    )
)  # fmt: skip


def wrong_forms(sentence: Sentence, heard: Heard) -> Iterator[tuple[str, str]]:
    """What stands in the transcript where a name was said, if it is not the name, and the name.

    Left out are mentions with a possessive or plural ending, and those whose neighbours were not understood
    either: there nobody can tell where the name begins and ends.
    """
    reference, written = tokens(sentence.text), tokens(heard.text)
    right, got = [token.word for token in reference], [token.word for token in written]
    spans = align(right, got)
    for mention, covered in zip(sentence.mentions, mention_spans(sentence, reference), strict=True):
        place = heard_for(spans, covered)
        pieces = got[place.first : place.end]
        has_ending = reference[covered.end - 1].end != mention.end
        if has_ending or pieces == right[covered.first : covered.end] or not _is_form(pieces, mention.name):
            continue
        if all(_is_right(right, got, spans, at) for at in (covered.first - 1, covered.end)):
            yield heard.text[written[place.first].start : written[place.end - 1].end], mention.name


def distinct(pairs: Iterable[tuple[str, str]], names: Sequence[SpokenName]) -> list[tuple[str, str]]:
    """Each wrong form once, for the name it was heard for most often.

    A form that was heard equally often for two names, or that is itself a name of the set, is left out.
    """
    taken = {tuple(words_of(text)) for name in names for text in (name.name, name.short) if text}
    by_form: dict[str, Counter[str]] = defaultdict(Counter)
    for form, name in pairs:
        if tuple(words_of(form)) not in taken:
            by_form[form][name] += 1
    kept: list[tuple[str, str]] = []
    for form, counts in by_form.items():
        (name, most), *others = counts.most_common(2)
        if not others or others[0][1] < most:
            kept.append((form, name))
    return sorted(kept, key=lambda pair: (pair[1], pair[0]))


def is_earlier(sentence: Sentence) -> bool:
    """Half of the sentences count as an earlier session, from which wrong forms can be learned."""
    return int(sentence.id, 16) % 2 == 0


def write_pairs(directory: Path) -> None:
    """`N-`, `P-` and `C-` files of both halves; of an earlier session `L-`, of a later `P-later-`."""
    names, sentences = read_names(directory / "names.tsv"), read_sentences(directory / "sentences.tsv")
    transcripts = [read_heard(heard_path(setting, directory)) for setting in settings_in(directory)]
    for split in SPLITS:
        half = [name for name in names if name.split == split]
        said = [sentence for sentence in sentences if sentence.split == split]
        earlier = [sentence for sentence in said if is_earlier(sentence)]
        later = [sentence for sentence in said if not is_earlier(sentence)]
        _write(directory / f"N-{split}.tsv", (f"{name.name}\t{name.type}" for name in half))
        for file, spoken in (("P", said), ("L", earlier), ("P-later", later)):
            pairs = distinct(_all_wrong_forms(spoken, transcripts), half)
            _write(directory / f"{file}-{split}.tsv", (f"{form}\t{name}" for form, name in pairs))
        _write(directory / f"C-{split}.txt", (sentence.text for sentence in said))


def _all_wrong_forms(
    sentences: Sequence[Sentence], transcripts: Sequence[Mapping[str, Heard]]
) -> Iterator[tuple[str, str]]:
    for heard in transcripts:
        for sentence in sentences:
            if sentence.id in heard:
                yield from wrong_forms(sentence, heard[sentence.id])


def _is_form(pieces: Sequence[str], name: str) -> bool:
    length = sum(map(len, pieces))
    return length >= 3 and length <= 2 * len(name) + 4 and not _FUNCTION_WORDS.issuperset(pieces)


def _is_right(reference: Sequence[str], heard: Sequence[str], spans: Sequence[Span], at: int) -> bool:
    """The word there was understood; beyond the ends of the sentence nothing could be wrong."""
    if not 0 <= at < len(reference):
        return True
    return list(heard[spans[at].first : spans[at].end]) == [reference[at]]


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
