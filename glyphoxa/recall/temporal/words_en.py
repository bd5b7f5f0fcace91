"""The English words for time."""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.recall.temporal.words import (
    NIGHT,
    SESSION,
    WEEKEND,
    Relation,
    TimeWords,
    any_of,
    compiled,
    set_of,
    whole,
)

_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8,
    "september": 9, "october": 10, "november": 11, "december": 12, "jan": 1, "feb": 2, "apr": 4, "aug": 8,
    "sept": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple": 2, "couple of": 2, "few": 3, "several": 4,
    "some": 3, "many": 8,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15,
    "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
_UNITS = {
    "minute": 1 / 1440, "minutes": 1 / 1440, "hour": 1 / 24, "hours": 1 / 24, "day": 1.0, "days": 1.0,
    "week": 7.0, "weeks": 7.0, "tenday": 10.0, "tendays": 10.0, "fortnight": 14.0, "month": 30.0, "months": 30.0,
    "year": 365.0, "years": 365.0, "weekend": WEEKEND, "weekends": WEEKEND, "night": NIGHT, "nights": NIGHT,
    "session": SESSION, "sessions": SESSION, "game": SESSION, "games": SESSION, "episode": SESSION,
    "episodes": SESSION,
}  # fmt: skip
_WEEKDAYS = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_RELATIONS: dict[str, Relation] = {
    "before": "before", "after": "after", "since": "since", "until": "until", "till": "until", "by": "until",
    "during": "during", "when": "during", "while": "during",
}  # fmt: skip
_WE = "we|you|i|he|she|they|it|everyone|the party|our party|the group"
_SAW = "saw|see|seen|met|meet|spoke|speak|talked|heard|hear|visited|visit|fought|came|come|went|left|were|found|learned"
_PHRASES = (
    # What is asked for.
    (
        "when",
        "when",
        r"when (?:exactly |precisely )?(?:did|was|were|is|are|will|has|have|had|does|do|can|could|should|would)"
        r"|(?:know|tell me|tell us|say|said|forget|forgot|wonder|sure|ask|asked|certain) (?:exactly )?when",
    ),
    (
        "when",
        "what which long when been",
        r"(?:what|which) (?:day|date|year|month|week|session|night)|what time(?= (?:did|was|is|does|do|will)(?!\S)|$)"
        r"|how long ago|since when|how long (?:has"
        r"|is) it been",
    ),
    ("how_long", "long many", r"how long(?! ago)|how many (?:minutes|hours|days|weeks|tendays|months|years)"),
    ("how_often", "often times frequently regularly", r"how (?:often|many times|frequently|regularly)"),
    (
        "order",
        "order first next last recently then earlier later before after timeline sequence chronological "
        "chronologically",
        r"(?:in )?(?:what|which) order|order of events|sequence of events|in order of time|chronological(?:ly)?"
        r"|timeline|before or after|what happened (?:next|then|first|after that|afterwards|before that)"
        r"|(?:what|which|who)(?: \S+){0,6} (?:came|come|happened|happen|was|arrived) (?:first|next)"
        r"|(?:what|which|who)(?: \S+){1,8} (?:first|earlier|later|last|more recently|next)(?=$|(?: \S+){1,6} or )",
    ),
    (
        "recap",
        "recap summarize summarise summary catch fill speed off were miss missed story previously",
        r"recap|summari[sz]e(?= (?:what (?:happened|has happened|we did|we have done)|the (?:story|session|game"
        r"|campaign|adventure)|our|last|everything|it all)|$)"
        r"|summary of (?:the |our |last |this )?(?:session|game|story|campaign|adventure|everything|events)"
        r"|catch (?:me|us) up|fill (?:me|us) in|up to speed"
        r"|where (?:did we (?:leave|stop)|we left|had we left) off|where were we(?= again| last|$)|what (?:have|did"
        r"|had) (?:i|we) miss(?:ed)?"
        r"|story so far|previously on",
    ),
    ("recap", "remind", r"remind (?:me|us)(?: of)? what (?:we did|we have done|weve done|happened|has happened)$"),
    (
        "recap_of",
        "happened went did have were been",
        r"what (?:all |else )?(?:has |have |had )?(?:happened|went on|been going on|was going on)"
        r"|everything (?:that )?happened"
        rf"|what (?:all )?(?:did|have|had) (?:{_WE})(?: all)? (?:do|done|been doing|been up to|get up to)"
        rf"|what (?:was|were) (?:{_WE}) (?:doing|up to)|what (?:{_WE})(?: all)? did",
    ),
    # Where in the order of sessions.
    (
        "back_0",
        "this tonights todays earlier start beginning end",
        r"(?:earlier )?this (?:session|game|episode)|to(?:night|day)s (?:session|game)"
        r"|(?:(?<=start of )|(?<=beginning of )|(?<=end of ))the session",
    ),
    ("back_0", "earlier", r"earlier (?:today|tonight|this evening|on today)"),
    (
        "back_2",
        "before",
        r"(?:the )?(?:session|game|episode|time) before (?:the )?last(?: (?:one|session|game|episode))?",
    ),
    ("back_1", "last previous", r"(?:the |our |your |my )?(?:last|previous) (?:session|game|episode)"),
    ("nth", "session episode game", r"(?:the |our |your |my )?(?:very )?{o} (?:session|episode|game)"),
    ("nth", "session episode", r"(?:session|episode)(?: number)? {n}"),
    ("back_1", "last", rf"(?<!the )last time(?! (?:{_WE}|that|our|my|someone|anyone)(?!\S))|the last time$"),
    ("latest", "last latest recent", rf"(?:the |my |our |your )?last time|last (?:{_SAW})|most recent(?:ly)?|latest"),
    (
        "first",
        "first originally initially",
        rf"(?:the |my |our |your |his |her |their )?(?:very )?first (?:time|thing)|first (?:{_SAW})|originally"
        rf"|initially",
    ),
    (
        "opening",
        "beginning start",
        r"(?:in|at|from|since) the (?:very )?(?:beginning|start)"
        r"(?: of (?:it all|all this|everything|(?:the|our|this) (?:campaign|story|journey|adventure"
        r"|whole thing)))?(?! of)",
    ),
    (
        "left_off",
        "off were",
        r"where (?:did we (?:leave|stop)|we left|had we left|we stopped) off|where were we(?= again| last|$)",
    ),
    ("whole", "far now", r"so far|until now|up to now"),
    # Where in time.
    (
        "just_now",
        "just",
        rf"just now|(?:{_WE}) just (?=sa[iy]d?|t[eo]ll?d?|mention|ask|spoke|speak|talk|do|did|heard|hear|saw|see)",
    ),
    (
        "just_now",
        "ago",
        r"(?:just )?(?:a|one) (?:moment|second|sec|minute) ago|(?:a )?(?:few|couple of|couple) (?:moments|seconds"
        r"|minutes) ago",
    ),
    (
        "long_ago",
        "ago back past",
        r"(?:a )?(?:(?:long|good|little) )?(?:while|time) (?:ago|back)|(?:long|ages) ago|back then",
    ),
    ("ago", "ago back", r"(?:(?:about|around|almost|nearly|over) )?(?:a )?{n} {u} (?:ago|back)"),
    ("long_ago", "past days ago once", r"in the past|in those days|(?:years|months|weeks) ago|once upon a time"),
    ("within", "last past", r"(?:the |these |our )?(?:last|past) (?:a )?{n} {u}"),
    ("recent", "recently lately other late", r"recently|lately|the other (?:day|night|evening|week)|of late"),
    ("yesterday_2", "yesterday", r"(?:the )?day before yesterday"),
    ("night_1", "yesterday last", r"yesterday (?:evening|night)|last (?:night|evening)"),
    ("morning_1", "yesterday", r"yesterday morning"),
    ("yesterday_1", "yesterday", r"yesterday(?: afternoon)?"),
    ("morning_0", "this", r"this morning"),
    ("yesterday_0", "today tonight this", r"today|tonight|this (?:evening|afternoon)"),
    ("season", "last this past", r"(?:last|this|this past|past) {s}"),
    ("weekday", " ".join(_WEEKDAYS), r"(?:on|last|on last|this|this past|past) {w}"),
    ("last", "last past previous", r"(?:the )?(?:last|past|previous|this past) {u}"),
    ("this", "this", r"this {u}"),
)
_COMPILED = compiled(_PHRASES, {"n": _NUMBERS, "u": _UNITS, "o": _ORDINALS, "w": _WEEKDAYS, "s": _SEASONS})

ENGLISH: Final = TimeWords(
    months=_MONTHS,
    doubtful=set_of("march may august fall spring dec oct jan sept"),
    month_after=set_of("in on since until till during by from before after early late mid"),
    numbers=_NUMBERS,
    ordinals=_ORDINALS,
    tens={"twenty": 20, "thirty": 30},
    units=_UNITS,
    weekdays=_WEEKDAYS,
    seasons=_SEASONS,
    relations=_RELATIONS,
    vague=frozenset(("couple", "couple of", "few", "several", "some", "many")),
    dates_only=set_of("by"),
    needs_article=set_of(),
    needs_clause=set_of(),
    pairs={("prior", "to"): "before", ("as", "of"): "until", ("up", "to"): "until"},
    articles=set_of("the our your my their his her a an that this"),
    clause_begins=set_of("we you i he she they it the our my your"),
    asks_alone=set_of("when"),
    stops=set_of("what who whom where how why which did do does could can will would should tell remind"),
    hollow=set_of(
        "we you i he she they it the a an our my your his her their them him us me all that this then",
        "these those to of at in on is was were am are be been now here there not ever again dawn long",
        "very too so and or over",
    ),
    day_first=False,
    in_year=set_of("in of during since until till by year before after around from"),
    day_words=set_of("day"),
    on_day=set_of("on at last this past early late mid"),
    parts=(
        (
            "beginning",
            re.compile(
                r"(?:^| )(?:beginning|start|opening|early|first (?:week|weekend|half|days))(?: of| in)?(?: the| our)?$"
            ),
        ),
        ("middle", re.compile(r"(?:^| )(?:middle|mid)(?: of)?(?: the| our)?$")),
        ("end", re.compile(r"(?:^| )(?:end|close|late|last (?:week|weekend|half|days))(?: of| in)?(?: the| our)?$")),
    ),
    amount=re.compile(
        rf"(?:^| )(?:(?P<n>{any_of(_NUMBERS)}|\d{{1,3}}) )?(?:(?P<u>{any_of(_UNITS)})|(?P<w>{any_of(_WEEKDAYS)}))$"
    ),
    phrases=_COMPILED,
    tells=frozenset((*_MONTHS.keys(), *_WEEKDAYS, "yesterday", "tomorrow", "ago", "weekend"))
    - frozenset(("may", "march", "jan", "dec", "oct", "sept", "sec")),
    tells_phrases=whole(
        r"(?:last|this|next|past|other) (?:week|month|year|weekend|day|night|session|summer|winter|spring|fall"
        r"|autumn|tenday)"
    ),
    triggers=frozenset().union(
        *(phrase.begins for phrase in _COMPILED), _MONTHS, _SEASONS, _RELATIONS, ("prior", "day")
    ),
)
