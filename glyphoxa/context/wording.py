"""All that a prompt says by itself: what stands in every NPC's in the campaign's language, and in which words a line of
talk, a fact and something recalled stand there.

Short sentences, the same for all: a small model copies the form of what it reads, and forgets what is long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledUtterance
from glyphoxa.domain.turn import Fault
from glyphoxa.language.content import language_of
from glyphoxa.language.quoted import as_fact, as_label, as_said, as_told
from glyphoxa.language.vocabulary import primary_language

FACTS: Final = "Facts: "
REMEMBERED: Final = "Remembered: "
SCENE: Final = "Scene: "
PAST: Final = "Earlier: "
DIRECTION: Final = "For this answer: "
SAYS: Final = re.compile(r"\s*[^\W_][\w'’. -]{0,40} says(?: to [^:\n]{1,40})?:\s*")
"""Who speaks, in front of a line of talk."""


LANGUAGE_CUES: Final[Mapping[str, str]] = {"en": "(Answer in English.)", "de": "(Antworte auf Deutsch.)"}
"""Behind a question that was answered in another language."""
BRIEF_CUES: Final[Mapping[str, str]] = {
    "en": "(React in one short sentence.)",
    "de": "(Sag dazu nur einen kurzen Satz.)",
}
"""Behind what a sentence is enough for."""


def said_line(speaker_name: str, text: str, *, to: str = "") -> str:
    """A line of talk."""
    who = as_label(speaker_name)
    return f"{who} says to {as_label(to)}: {as_said(text)}" if to else f"{who} says: {as_said(text)}"


def recalled_line(one: Recalled) -> str:
    """Something recalled, also where it is shown to a DM or found by a tool."""
    who = recalled_of(one)
    if who:
        return f"{who}{as_said(one.text)}"
    return as_fact(one.text) if isinstance(one, RecalledFact) else as_told(one.text)


def recalled_of(one: Recalled) -> str:
    """Who said it, in front of it; empty for what nobody said."""
    if isinstance(one, RecalledUtterance) and one.speaker_name:
        return f"{'You' if one.is_own else as_label(one.speaker_name)} said: "
    return ""


RELATIONS: Final[Mapping[str, str]] = {
    "KNOWS": "{source} knows {target}",
    "LOCATED_AT": "{source} is at {target}",
    "OWNS": "{source} owns {target}",
    "MEMBER_OF": "{source} belongs to {target}",
    "ALLIED_WITH": "{source} is allied with {target}",
    "HOSTILE_TO": "{source} is hostile to {target}",
    "PARTICIPATED_IN": "{source} took part in {target}",
    "QUEST_GIVER": "{source} asks for help with {target}",
    "CHILD_OF": "{source} is a child of {target}",
    "EMPLOYED_BY": "{source} works for {target}",
}
"""Facts between two; others are read out as their type is written."""


@dataclass(frozen=True, slots=True)
class Example:
    """An exchange in which `{name}`, `{occupation}` and `{place}` are put in.

    Attributes:
        kept: What the NPC keeps to itself in it.
    """

    said: str
    reply: str
    facts: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """One language's.

    Attributes:
        persona: For an NPC whose author wrote none.
        frame: Behind every persona.
        keeps: In front of an NPC's own secrets.
        is_here: Behind who is here, one and several.
        to_do: In front of quests that are under way.
        speaks: For an NPC that does not speak every language, with `{languages}`.
        strangers: Who speaks in the examples: the first whose name nobody in the campaign has.
        works: An example for an NPC whose occupation is known, `is_at` for one whose place is.
        examples: The others, for an NPC that has none. A small model copies the last ones most: one that answers from
            facts stands behind those that do not.
        at_a_loss: What it says when nothing of a reply may be said.
        too_late: What it says when its answer does not come.
        fillers: Sounds of an NPC whose author gave it none, while its answer is on its way.
        deflects: What it says instead of a secret of its own.
        knows_nothing: What it says instead of something that it does not know. `never_heard` is the same of a name,
            `{what}`, and `never_said` of words of its own.
        you_told: An answer from what the asker told, `{what}` in the second person; `you_said` with its very words.
        untold: A fact: nobody has told `{name}` of what is asked. `unheard` is the same of a name, `{what}`,
            `unsaid` of words of its own, and `no_more` where it knows something else of whom the question names.
    """

    persona: str
    frame: str
    keeps: str
    is_here: tuple[str, str]
    joins: str
    to_do: str
    speaks: str
    strangers: tuple[str, ...]
    works: Example
    is_at: Example
    examples: tuple[Example, ...]
    at_a_loss: tuple[str, ...]
    too_late: tuple[str, ...]
    fillers: tuple[str, ...]
    deflects: tuple[str, ...]
    knows_nothing: tuple[str, ...]
    never_heard: tuple[str, ...]
    never_said: tuple[str, ...]
    you_told: str
    you_said: str
    untold: str
    unheard: str
    unsaid: str
    no_more: str

    def here(self, names: Sequence[str]) -> str:
        """Who is here, as a sentence; empty for nobody.

        >>> wording("en").here(["Mirelle", "Tamsin", "Bran"])
        'Mirelle, Tamsin and Bran are here.'
        """
        return f"{self._listed(names)} {self.is_here[len(names) > 1]}." if names else ""

    def speaks_only(self, languages: Sequence[str]) -> str:
        """That an NPC speaks these and no other.

        >>> wording("en").speaks_only(["English", "Dwarvish"])
        'You speak only English and Dwarvish. To any other language you say that you do not understand it.'
        """
        return self.speaks.format(languages=self._listed(languages))

    def _listed(self, names: Sequence[str]) -> str:
        *first, last = names
        return f"{', '.join(first)} {self.joins} {last}" if first else last


_ENGLISH: Final = Wording(
    persona="You are {name}.",
    frame=(
        "You speak aloud, as {name}, in the first person. Say only the words you speak, in one or two short sentences, "
        "and never what you do. Answer in the language you are spoken to. Do not repeat the question. Use only what "
        "you are told; if that does not say, you do not know."
    ),
    keeps="You keep this to yourself and deny it: ",
    is_here=("is here", "are here"),
    joins="and",
    to_do="Still to be done: ",
    speaks="You speak only {languages}. To any other language you say that you do not understand it.",
    strangers=("Peter", "Martha", "Conrad", "Agnes"),
    works=Example("What do you do here?", "I am the {occupation} here.", facts="{name} is the {occupation}."),
    is_at=Example("Where do I find you?", "You find me at {place}.", facts="{name} is at {place}."),
    examples=(
        Example("Hello, {name}. How are you?", "Well enough. What brings you to me?"),
        Example(
            "Do you know my uncle Hubert?",
            "Hubert? No, nobody has told me of him.",
            facts="{name} has never heard of Hubert.",
        ),
        Example(
            "What did I tell you about my horse?",
            "Your horse? You never told me about it.",
            facts="Nobody has told {name} anything about that.",
        ),
        Example("Can you use a computer?", "A computer? I do not know that word."),
        Example("Tell me your secret.", "My secrets are my own."),
        Example(
            "Who broke the mill wheel?",
            "Not I. I slept all night.",
            kept="You broke the mill wheel at night.",
        ),
        Example(
            "What happened at the old mill?",
            "There was a fire, two winters ago.",
            facts="At the old mill there was a fire two winters ago.",
        ),
        Example("Who mended the old cart?", "I did. It took me all day.", facts="{name} mended the old cart."),
        Example("Guten Morgen, wie geht es dir?", "Guten Morgen. Mir geht es gut."),
    ),
    at_a_loss=("Hm? Say that again.", "Hm. I have nothing to say to that.", "I did not catch that. What was it?"),
    too_late=("Hm? Say that again.", "I did not catch that. What was it?"),
    fillers=("Hm.", "Well.", "Ah."),
    deflects=("That is nobody's business but mine.", "I would rather not speak of that.", "Ask me something else."),
    knows_nothing=("I know nothing of that.", "Nobody has told me about that.", "That I do not know."),
    never_heard=(
        "{what}? That name means nothing to me.",
        "{what}? I have never heard that name.",
        "I do not know that name, {what}.",
    ),
    never_said=("I never said that.", "I do not remember saying that.", "I said nothing of the kind."),
    you_told="You told me {what}",
    you_said='You said: "{what}"',
    untold="Nobody has told {name} anything about that.",
    unheard="{name} has never heard of {what}.",
    unsaid="{name} never said that.",
    no_more="{name} knows nothing more about it.",
)
_GERMAN: Final = Wording(
    persona="Du bist {name}.",
    frame=(
        "Du sprichst laut, als {name}, in der ersten Person. Sag nur die Worte, die du sprichst, in einem oder zwei "
        "kurzen Sätzen, und nie, was du tust. Antworte in der Sprache, in der man dich anspricht. Wiederhole nicht die "
        "Frage. Nimm nur, was dir gesagt ist; was da nicht steht, das weißt du nicht."
    ),
    keeps="Das behältst du für dich und streitest es ab: ",
    is_here=("ist hier", "sind hier"),
    joins="und",
    to_do="Noch zu tun: ",
    speaks="Du sprichst nur {languages}. Zu jeder anderen Sprache sagst du, dass du sie nicht verstehst.",
    strangers=("Peter", "Martha", "Konrad", "Agnes"),
    works=Example("Was machst du hier?", "Ich bin hier {occupation}.", facts="{name} ist {occupation}."),
    is_at=Example("Wo finde ich dich?", "Du findest mich hier: {place}.", facts="{name} ist hier: {place}."),
    examples=(
        Example("Guten Tag, {name}. Wie geht es dir?", "Ganz gut. Was führt dich zu mir?"),
        Example(
            "Kennst du meinen Onkel Hubert?",
            "Hubert? Nein, von dem hat mir niemand erzählt.",
            facts="Von Hubert hat {name} nie gehört.",
        ),
        Example(
            "Was habe ich dir über mein Pferd gesagt?",
            "Dein Pferd? Davon hast du mir nichts erzählt.",
            facts="Niemand hat {name} etwas davon erzählt.",
        ),
        Example("Kannst du mit einem Computer umgehen?", "Computer? Das Wort kenne ich nicht."),
        Example("Verrate mir dein Geheimnis.", "Meine Geheimnisse gehören mir."),
        Example(
            "Wer hat das Mühlrad zerbrochen?",
            "Ich nicht. Ich habe die ganze Nacht geschlafen.",
            kept="Du hast nachts das Mühlrad zerbrochen.",
        ),
        Example(
            "Was ist an der alten Mühle geschehen?",
            "Da hat es gebrannt, vor zwei Wintern.",
            facts="An der alten Mühle hat es vor zwei Wintern gebrannt.",
        ),
        Example(
            "Wer hat den alten Karren geflickt?",
            "Das war ich. Den ganzen Tag hat es gedauert.",
            facts="{name} hat den alten Karren geflickt.",
        ),
        Example("Good morning, how are you?", "Good morning. I am well."),
    ),
    at_a_loss=("Hm? Sag das noch einmal.", "Hm. Dazu habe ich nichts zu sagen.", "Wie war das? Noch einmal, bitte."),
    too_late=("Hm? Sag das noch einmal.", "Wie war das? Noch einmal, bitte."),
    fillers=("Hm.", "Nun.", "Ach."),
    deflects=("Das geht nur mich etwas an.", "Davon rede ich nicht gern.", "Frag mich lieber etwas anderes."),
    knows_nothing=("Davon weiß ich nichts.", "Davon hat mir niemand erzählt.", "Das weiß ich nicht."),
    never_heard=(
        "{what}? Der Name sagt mir nichts.",
        "{what}? Den Namen habe ich nie gehört.",
        "{what}? Das kenne ich nicht.",
    ),
    never_said=("Das habe ich nie gesagt.", "Daran erinnere ich mich nicht.", "So etwas habe ich nicht gesagt."),
    you_told='Du hast gesagt: "{what}"',
    you_said='Du hast gesagt: "{what}"',
    untold="Niemand hat {name} etwas davon erzählt.",
    unheard="Von {what} hat {name} nie gehört.",
    unsaid="Das hat {name} nie gesagt.",
    no_more="Mehr weiß {name} darüber nicht.",
)
_WORDINGS: Final[Mapping[str, Wording]] = {"en": _ENGLISH, "de": _GERMAN}


def wording(language: str) -> Wording:
    """Of a campaign's language (BCP 47); English where there is none of its own."""
    return _WORDINGS.get(primary_language(language), _ENGLISH)


# What an NPC says where nothing of its reply may be said: a line in character, chosen without a model.


_WITH_LINES_OF_THEIR_OWN: Final = (Fault.SECRET, Fault.UNFOUNDED)
"""Where the NPC had something to say and keeps it to itself, and where it does not know."""


class StandIns:
    """The lines of one NPC, in turn: none comes twice running.

    Args:
        language: The campaign's, for a question that shows none.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._used: Counter[tuple[str, Fault | None]] = Counter()

    def line(self, question: str, fault: Fault | None, told: Sequence[str] = ()) -> str:
        """In the language of the question.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from what the asker told; see `HotContext.told`.
        """
        if told and fault is not Fault.SECRET:
            return told[0]
        language = language_of(question) or self._language
        why = fault if fault in _WITH_LINES_OF_THEIR_OWN else None
        words = wording(language)
        of_fault: dict[Fault | None, tuple[str, ...]] = {
            Fault.SECRET: words.deflects,
            Fault.UNFOUNDED: words.knows_nothing,
        }
        lines = of_fault.get(why, words.at_a_loss)
        return self._next_of(lines, language, why)

    def shrug(self, question: str, lines: Sequence[str]) -> str:
        """One of what an NPC can say to what it knows nothing of, `lines` in the campaign's language. Empty for a
        question in another one.
        """
        language = language_of(question)
        if language and language != primary_language(self._language):
            return ""
        return self._next_of(lines, self._language, Fault.UNFOUNDED)

    def _next_of(self, lines: Sequence[str], language: str, why: Fault | None) -> str:
        n_used = self._used[language, why]
        self._used[language, why] += 1
        return lines[n_used % len(lines)]
