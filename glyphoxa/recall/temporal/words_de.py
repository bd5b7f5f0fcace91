"""The German words for time."""

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
    "januar": 1, "janner": 1, "februar": 2, "feber": 2, "marz": 3, "april": 4, "mai": 5, "juni": 6, "juli": 7,
    "august": 8, "september": 9, "oktober": 10, "november": 11, "dezember": 12,
}  # fmt: skip
_NUMBERS = {
    "ein": 1, "eine": 1, "einem": 1, "einer": 1, "einen": 1, "zwei": 2, "drei": 3, "vier": 4, "funf": 5,
    "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwolf": 12, "ein paar": 3, "paar": 3,
    "einigen": 4, "einige": 4, "mehreren": 4, "wenigen": 3, "vielen": 8,
}  # fmt: skip
_TENS = {
    "erst": 1, "zweit": 2, "dritt": 3, "viert": 4, "funft": 5, "sechst": 6, "siebt": 7, "siebent": 7, "acht": 8,
    "neunt": 9, "zehnt": 10, "elft": 11, "zwolft": 12, "dreizehnt": 13, "vierzehnt": 14, "funfzehnt": 15,
    "sechzehnt": 16, "siebzehnt": 17, "achtzehnt": 18, "neunzehnt": 19, "zwanzigst": 20, "dreissigst": 30,
}  # fmt: skip
_ONES = ("einund", "zweiund", "dreiund", "vierund", "funfund", "sechsund", "siebenund", "achtund", "neunund")
_TENS |= {one + "zwanzigst": 20 + n for n, one in enumerate(_ONES, start=1)} | {"einunddreissigst": 31}
_ORDINALS = {stem + ending: n for stem, n in _TENS.items() for ending in ("e", "en", "er", "em", "es")}
_UNITS = {
    "minute": 1 / 1440, "minuten": 1 / 1440, "stunde": 1 / 24, "stunden": 1 / 24, "tag": 1.0, "tagen": 1.0,
    "tage": 1.0, "woche": 7.0, "wochen": 7.0, "monat": 30.0, "monaten": 30.0, "monate": 30.0, "jahr": 365.0,
    "jahren": 365.0, "jahre": 365.0, "wochenende": WEEKEND, "wochenenden": WEEKEND, "nacht": NIGHT,
    "nachten": NIGHT, "abend": NIGHT, "abenden": NIGHT, "sitzung": SESSION, "sitzungen": SESSION,
    "session": SESSION, "sessions": SESSION, "spielabend": SESSION, "spielabenden": SESSION, "runde": SESSION,
    "runden": SESSION, "folge": SESSION, "folgen": SESSION,
}  # fmt: skip
_WEEKDAYS = {
    "montag": 0, "dienstag": 1, "mittwoch": 2, "donnerstag": 3, "freitag": 4, "samstag": 5, "sonnabend": 5,
    "sonntag": 6,
}  # fmt: skip
_SEASONS = {"fruhling": 3, "fruhjahr": 3, "sommer": 6, "herbst": 9, "winter": 12}
_RELATIONS: dict[str, Relation] = {
    "bevor": "before", "ehe": "before", "vor": "before", "nachdem": "after", "nach": "after", "seit": "since",
    "seitdem": "since", "bis": "until", "wahrend": "during", "als": "during", "ab": "since",
}  # fmt: skip
_ANY_LAST = r"letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?"
_SESSION = "sitzung|session|spielabend|runde|folge|spielrunde"
_PHRASES = (
    (
        "when",
        "wann lange welchem welcher welches",
        r"wann|seit wann|wie lange (?:ist|war) (?:es|das) her|vor wie (?:langer zeit|vielen \S+)"
        r"|(?:an |in )?welche[mrs] (?:tag|datum|jahr|monat|woche|sitzung)",
    ),
    (
        "how_long",
        "lange viele",
        r"wie lange(?! (?:ist|war) (?:es|das) her)|wie viele (?:minuten|stunden|tage|wochen|monate|jahre)",
    ),
    ("how_often", "oft haufig", r"wie (?:oft|haufig|viele male)"),
    (
        "order",
        "reihenfolge zuerst zuletzt danach dann davor zeitlich chronologisch zeitstrahl ablauf",
        r"(?:in )?welche[rn]? reihenfolge|reihenfolge|der reihe nach|zeitstrahl|chronologisch|(?:der )?ablauf"
        r"|(?:was|wer|welche[rs]?|welchen)(?: \S+){0,8} (?:zuerst|zuletzt|als erstes|als letztes)"
        r"|was (?:geschah|passierte|kam|war) (?:danach|dann|davor|als nachstes)"
        r"|was ist (?:danach|dann|davor|als nachstes) (?:passiert|geschehen)",
    ),
    (
        "recap",
        "zusammen zusammenfassung bisher verpasst stehengeblieben stehen ruckblick",
        r"(?:fass|fasse|fasst)(?: \S+){0,5} zusammen|zusammenfassung|was bisher geschah|ruckblick"
        r"|die bisherige geschichte"
        r"|was (?:habe ich|haben wir|hab ich) verpasst|wo (?:waren|sind) wir (?:stehen ?geblieben|zuletzt)",
    ),
    (
        "recap",
        "erinnere erinner",
        r"(?:erinnere?|erinnert) (?:mich|uns)(?: daran)? was (?:wir (?:getan|gemacht) haben|passiert ist"
        r"|geschehen ist)$",
    ),
    (
        "recap_of",
        "passiert passierte geschah geschehen gemacht getan los",
        r"was (?:ist|war)(?: alles)?(?!(?: \S+){0,6} (?:mit|aus) )|was (?:passierte|geschah)(?: alles)?"
        r"|was (?:haben|habt|hatten) (?:wir|ihr|sie)(?: alles)?|was (?:wir|ihr)(?: alles)?",
    ),
    (
        "back_0",
        "diese dieser heutigen heutige diesem anfang beginn ende",
        rf"(?:in )?(?:diese[rm]?|der heutigen|am heutigen) (?:{_SESSION})"
        rf"|(?:(?<=anfang )|(?<=beginn )|(?<=ende ))der (?:{_SESSION})",
    ),
    (
        "back_2",
        "vorletzte vorletzten vorletzter vorletztes",
        rf"(?:(?:in|an|bei) )?(?:der |dem |am |die |das )?vorletzte[nrs]? (?:{_SESSION}|mal)",
    ),
    (
        "back_1",
        "letzte letzten letzter vorige vorigen voriger vergangene vergangenen",
        rf"(?:in |an |bei )?(?:der |dem |am |beim |die |den |unserer )?(?:{_ANY_LAST}) (?:{_SESSION})",
    ),
    (
        "nth",
        "sitzung session spielabend runde folge",
        rf"(?:in |an |bei )?(?:der |dem |am |unserer |die |unsere )?(?:aller)?{{o}} (?:{_SESSION})",
    ),
    ("nth", "sitzung session folge", r"(?:in )?(?:sitzung|session|folge)(?: nummer)? {n}"),
    (
        "back_1",
        "mal",
        r"(?:beim |das )?(?:letzte[ns]|vorige[ns]) mal(?= (?:passiert|geschehen|gemacht|getan)(?!\S)|$)"
        r"|letztes mal(?! als)",
    ),
    ("left_off", "stehengeblieben stehen zuletzt", r"wo (?:waren|sind) wir (?:stehen ?geblieben|zuletzt)"),
    ("latest", "mal zuletzt", r"(?:das |beim |zum )?letzte[nms]? mal|zuletzt"),
    (
        "first",
        "ersten erste erstes zuerst ursprunglich anfangs allerersten",
        r"(?:das |beim |zum |unser )?(?:aller)?erste[nms]? (?:mal|treffen|begegnung)|das erste was|ursprunglich"
        r"|anfangs",
    ),
    (
        "opening",
        "anfang beginn",
        r"(?:ganz )?(?:am|zu|vom|von|im)(?: \S+)? (?:anfang|beginn)(?: (?:der|unserer|dieser) (?:geschichte|reise"
        r"|kampagne))?(?! (?:der|des|von)(?!\S))",
    ),
    ("whole", "bisher jetzt", r"bisher|bis jetzt"),
    (
        "just_now",
        "eben gerade",
        r"gerade eben|eben gerade|soeben|eben erst|(?:gerade|eben) (?=gesagt|erzahlt|erwahnt|gefragt|gehort)",
    ),
    (
        "just_now",
        "moment augenblick minuten",
        r"vor (?:einem|wenigen|ein paar) (?:moment|augenblick|minuten|augenblicken)",
    ),
    ("back_0", "vorhin", r"vorhin"),
    (
        "long_ago",
        "damals langer langem einst fruher einiger jahren",
        r"damals|vor (?:sehr )?lange[mr](?: zeit)?|vor einiger zeit|einst|fruher|vor jahren|in der vergangenheit",
    ),
    ("ago", "vor", r"vor (?:(?:etwa|ungefahr|rund|fast|circa|ca) )?{n} {u}"),
    ("within", "letzten vergangenen", r"(?:in |wahrend )?(?:den |der |die )?(?:letzten|vergangenen) {n} {u}"),
    ("recent", "neulich kurzlich letztens kurzem jungst", r"neulich|kurzlich|letztens|vor kurzem|jungst"),
    ("yesterday_2", "vorgestern", r"vorgestern(?: (?:abend|nacht|fruh|morgen))?"),
    ("night_1", "gestern letzte letzten heute", r"gestern (?:abend|nacht)|letzte nacht|letzten abend|heute nacht"),
    ("morning_1", "gestern", r"gestern (?:morgen|fruh|vormittag)"),
    ("yesterday_1", "gestern", r"gestern(?: nachmittag)?"),
    ("morning_0", "heute", r"heute (?:morgen|fruh|vormittag)"),
    ("yesterday_0", "heute", r"heute(?: (?:abend|nachmittag))?"),
    (
        "season",
        "letzten letztes letzter diesen dieses vorigen vergangenen",
        rf"(?:im )?(?:{_ANY_LAST}|letztes|voriges|diesen|dieses|diesem) {{s}}",
    ),
    ("weekday", " ".join(_WEEKDAYS), rf"(?:am|{_ANY_LAST}|am {_ANY_LAST}|diesen) {{w}}(?:abend)?"),
    (
        "last",
        "letzte letzten letzter letztes letztem vorige vorigen voriges voriger vergangene vergangenen vergangenes",
        rf"(?:(?:im|am|in der|in den) )?(?:{_ANY_LAST}|letztes|voriges|vergangenes) {{u}}",
    ),
    ("this", "diese dieser diesen diesem dieses", r"(?:in )?diese[rnms]? {u}"),
)
_COMPILED = compiled(_PHRASES, {"n": _NUMBERS, "u": _UNITS, "o": _ORDINALS, "w": _WEEKDAYS, "s": _SEASONS})

GERMAN: Final = TimeWords(
    months=_MONTHS,
    doubtful=set_of(""),
    month_after=set_of(""),
    numbers=_NUMBERS,
    ordinals=_ORDINALS,
    tens={},
    units=_UNITS,
    weekdays=_WEEKDAYS,
    seasons=_SEASONS,
    relations=_RELATIONS,
    vague=frozenset(("ein paar", "paar", "einigen", "einige", "mehreren", "wenigen", "vielen")),
    dates_only=set_of("ab"),
    needs_article=set_of("vor nach seit bis ab wahrend"),
    needs_clause=set_of("als"),
    pairs={},
    articles=set_of(
        "der die das dem den des unserem unserer unser unseren eurem eurer deinem deiner seinem ihrem im",
        "am einem einer",
    ),
    clause_begins=set_of("wir ihr du ich er sie es der die das unser unsere mein meine man"),
    asks_alone=set_of(""),
    stops=set_of(
        "sag sage erzahl erzahle was wer wen wem wo wie warum wieso weshalb welche welcher welches welchen wohin woher"
    ),
    hollow=set_of(
        "wir ihr du ich er sie es der die das dem den des ein eine einem einer einen unser unsere unserem",
        "mir dir mich dich uns euch ihm ihn allem alle ist war waren sind sein haben habt hatten hat und",
        "oder so sehr hier dort da nun jetzt immer wieder auf in an zu bei mit",
    ),
    day_first=True,
    in_year=set_of("in im seit bis jahr jahre nach vor ab von sommer winter herbst anfang ende mitte"),
    day_words=set_of("tag tage tags"),
    on_day=set_of("am an zu zum zur letzten letzter letztes letztem vorigen voriges diesen diesem dieses"),
    parts=(
        (
            "beginning",
            re.compile(r"(?:^| )(?:anfang|beginn|fruhen|erste[nr]? (?:woche|halfte))(?: (?:der|des|im|vom))?$"),
        ),
        ("middle", re.compile(r"(?:^| )mitte(?: (?:der|des))?$")),
        ("end", re.compile(r"(?:^| )(?:ende|schluss|spaten|letzte[nr]? (?:woche|halfte))(?: (?:der|des|im|vom))?$")),
    ),
    amount=re.compile(
        rf"(?:^| )(?:(?P<n>{any_of(_NUMBERS)}|\d{{1,3}}) )?(?:(?P<u>{any_of(_UNITS)})|(?P<w>{any_of(_WEEKDAYS)}))$"
    ),
    phrases=_COMPILED,
    tells=frozenset((*_MONTHS, *_WEEKDAYS, "gestern", "vorgestern", "ubermorgen", "wochenende")),
    tells_phrases=whole(
        rf"(?:{_ANY_LAST}|letztes|nachste[ns]?|diese[ns]?) (?:woche|monat|jahr|wochenende|nacht|sommer|winter|herbst"
        rf"|sitzung)"
        rf"|vor (?:{any_of(_NUMBERS)}|\d{{1,3}}) (?:{any_of(_UNITS)})"
    ),
    triggers=frozenset().union(*(phrase.begins for phrase in _COMPILED), _MONTHS, _SEASONS, _RELATIONS, ("tag",)),
)
