"""What the form of a sentence says of whom it is meant for (English and German, whatever the campaign's language).

The patterns are laid on a `SaidSentence`. Each is a sign and no proof; `glyphoxa.turns.address` weighs them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

# Patterns from lists of words, so that who adds a word need not read a pattern.


def words(*listed: str) -> str:
    """The words, which stand between commas, as alternatives of a pattern. A word may be a pattern itself."""
    return "|".join(word for some in listed for word in some.split(", "))


def one_of(*listed: str) -> str:
    """Likewise, as a group: `one_of("oh, excuse me", "ach")` is `(?:oh|excuse me|ach)`."""
    return f"(?:{words(*listed)})"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Matches what one of the patterns matches, the first of them first."""
    return re.compile("|".join(patterns))


# Words and forms by which `glyphoxa.turns.sentence_form` knows what a sentence is (English and German).
#
# They are laid on the text of a `SaidSentence`. What a pattern must not be followed or preceded by tells the forms
# apart that mean another thing: "let's go" is a plan, "let us in" is not.


_OPENERS = (
    "(?:"
    + one_of(
        "oh, so, well, and, but, now, okay, ok, ah, right, no, yes, yeah, hey, hm, hmm, uh, um, er, please",
        "then, look, listen, sorry, excuse me",
        "ja, nein, und, aber, also, ach, na, naja, äh, ähm, tja, bitte, gut, nun, dann, denn, hör mal",
        "entschuldigung, entschuldigt, verzeihung, actually, honestly, guys, leute, alright, all right, hello",
        "hallo, wait, warte, moment",
    )
    + r"\b(?: ?[,:;-])? ?)*"
)

SECOND = any_of(
    r"\b"
    + one_of(
        "you(?!(?: know| see)? ?(?:,|$)), you're, you've, you'd, you'll, your, yours, yourself, thee, thou",
        "thy",
        "du, dich, dir, dein, deine[mnrs]?, Sie, Ihnen, Ihre?[mnrs]?, euch, euer, eure[mnrs]?, Euch, Euer",
        "Eure[mnrs]?",
    )
    + r"\b",
    r"\b"
    + one_of(
        "habt, seid, könnt, wollt, wisst, kennt, sagt, macht, braucht, mögt, müsst, dürft, sollt, werdet",
        "würdet, könntet, hättet, wärt, glaubt, meint, denkt, verkauft, sucht, lebt, wohnt, arbeitet, kommt",
        "geht, seht, hört, tragt, gebt, nehmt, wart, hattet, tut, steht, heißt, verlangt, führt, bietet",
        "schmiedet",
    )
    + r" ihr\b",
    r"\bihr (?:habt|seid|könnt|wollt|wisst|kennt|müsst|dürft|sollt)\b",
    "^"
    + one_of(
        "kennst, hast, weißt, kannst, bist, willst, magst, würdest, könntest, glaubst, machst, brauchst",
        "siehst, hörst",
    )
    + " ",
)
SECOND_OF_SIE = re.compile(r"\b(?:\w+en|sind) (?:Sie)\b")
THE_OTHERS = any_of(
    r"\byou (?:guys|lot|all|two|three|both)\b",
    r"\by'all\b",
    r"\b(?:ihr|euch|euer) (?:beiden?|alle|allen|zwei|drei|leute)\b",
    r"\bguys\b",
    r"\bleute\b",
    r"\bfolks\b",
    r"\bfreunde\b",
    r"\bfriends\b",
    r"\beveryone (?:ready|agree|in|okay|ok)\b",
)
QUESTION = re.compile(
    f"^{_OPENERS}"
    + one_of(
        "what, what's, where, where's, who, who's, why, how, how's, when, which, whose, is, are, do, does",
        "did, can, could, would, will, have, has, may, might, shall, should, am",
        "was "
        + one_of(
            "ist, hat, kostet, macht, willst, wollt, meinst, meint, weißt, wisst, kannst, gibt, habt, hast, führt",
            "sagst, sagt, verkauft, verlangt, verlangst, denkst, denkt, für, brauchst, braucht",
        ),
        "wo, wer, wie, wann, warum, wieso, weshalb, wohin, woher, wem, wen, welche[mnrs]?, wieviel, woran",
        "wovon, gibt es, gibt's, hast, habt, haben, kannst, könnt, können, könnten, könntet, könntest",
        "kann ich, kann man, darf ich, weißt, wisst, wissen, kennst, kennt, kennen, bist, seid, sind, ist",
        "willst, wollt, wollen Sie, würdest, würdet, würden, magst, mögt, dürfen, werdet, wirst, glaubst",
        "glaubt, steht",
    )
    + r"\b"
)
ORDER = re.compile(
    f"^{_OPENERS}(?:don't |do not |just |only |first |nicht )?"
    + one_of(
        "tell, give, come, go, wait, stop, listen, help, get, take, let me, let us, follow, show, bring, hold",
        "run, be, look, leave, make, mend, fix, repair, sell, put, open, close, keep, pour, serve, fetch, say",
        "speak, explain, describe, calm, sit, stand, stay, step, drop, hand, pass, read, sing, play, heal",
        "bless, name, try, think, remember, forget, trust, spare, lower, move, point, lead, teach, send, lend",
        "swear, promise, answer, talk, wake, drink, eat, have a, mind, tell, ask",
        "komm, kommt, gib, gebt, sag, sagt, geh, geht, warte, wartet, halt, haltet, schau, schaut, hör, hört",
        "hilf, helft, nimm, nehmt, lass, lasst, zeig, zeigt, lauf, lauft, bring, bringt, erzähl, erzählt",
        "erklär, erklärt, bleib, bleibt, mach, macht, setz, setzt, steh, sei, seid, sprich, sprecht, rede",
        "redet, verkauf, öffne, öffnet, schließ, schweig, schweigt, beruhig, leg, legt, hol, holt, lies, sing",
        "singt, spiel, trink, trinkt, verzeih, verzeiht, antworte, antwortet, schwör, überleg, denk, vergiss",
        r"führ, führt, (?:\w+en) Sie",
    )
    + r"\b"
)
REQUEST = any_of(
    r"\b"
    + one_of(
        "i'd like, i would like, i'd love, i need (?:a|an|some|your|to (?:buy|rent|speak|talk to you))",
        "i want (?:a|an|some|to (?:buy|rent|hire|sell))",
        "we need (?:a|an|some|two|three|four|five|rooms?|beds?|your), we'd like, we would like",
        r"i'll (?:have|take)(?! (?:the )?(?:left|right|first|rear|point|watch|front|back|one)\b)",
        "we'll (?:have|take), we want (?:a|two|three|to (?:buy|rent|sell)), i'm looking for, i am looking for",
        "we're looking for, we are looking for, i've come (?:to|for|about), i'm here (?:to|for|about)",
        "i have come",
        "(?:can|could|may|might) (?:i|we) (?:please )?"
        + one_of(
            "get, have, buy, rent, see, stay, speak, talk to you, ask, sleep, borrow, sit, come in, leave, trade, order"
        ),
        r"ich (?:hätte|möchte|brauche|bräuchte|suche|will|würde)(?: \w+)? "
        + one_of("gern, gerne, ein, eine, einen, zwei, etwas, neue[nrs]?"),
        "ich (?:hätte|möchte) gern",
        "wir (?:hätten|möchten|suchen|bräuchten|brauchen (?:ein|eine|einen|zwei|drei|vier|etwas))",
        "(?:kann|könnte|darf|dürfte) ich",
        "(?:können|könnten|dürfen|dürften) wir (?:bitte |hier )?(?:ein|eine|einen|zwei|hier|bei)",
        "ich (?:nehme|nehm), wir nehmen",
    )
    + r"\b",
    r"(?:\bplease|\bbitte)$",
    "^"
    + one_of("one, two, three, a, an, ein, eine, einen, zwei, drei, noch ein, noch eine, noch zwei")
    + " [^,]*, (?:please|bitte)$",
)
GREETING = re.compile(
    f"^{_OPENERS}"
    + one_of(
        "hello, hi, hey, greetings, good (?:morning|evening|day|afternoon|night|morrow), well met, welcome",
        "farewell, goodbye, thank you, thanks, many thanks",
        "hallo, guten (?:abend|morgen|tag), gute nacht, grüß, grüße, seid gegrüßt, sei gegrüßt, servus, moin",
        "danke, vielen dank, habt dank, auf wiedersehen, lebt wohl, leb wohl",
    )
    + r"\b"
)
TALKED = any_of(
    r"\b(?:what|when|where|which|how) (?:\w+ ){0,2}?(?:did|have|had) we (?:\w+ )??"
    + one_of("talk, talked, speak, spoken, discuss, discussed, agree, agreed")
    + r"\b",
    r"\b(?:was|wann|wo|wovon|worüber|worauf|welche\w*)\b.{0,20}\b(?:haben|hatten) wir\b.*"
    r"\b(?:geredet|gesprochen|besprochen|vereinbart|ausgemacht|geeinigt|verabredet)\b",
)
"""Asks for the talk of before: of an NPC with whom one is talking, a question to it and no plan."""
PLAN = any_of(
    r"\b(?:let's|lets|let us)(?! (?:in|through|pass|go with you)\b)",
    r"\b" + one_of("should, shall, do, are, did, have, will, were, must, would") + r" we\b",
    r"\bwe "
    + one_of(
        "should, could, can, must, have to, need to, needs? (?:a plan|more|someone|somebody), ought, might",
        "better, go, split, take, will, 'll, try, sneak, wait, attack, rest, still, just, don't, can't, won't",
        "already, never, agreed, were, are, do, did",
    )
    + r"\b",
    r"\bwe(?:'ll|'re|'d better)\b",
    r"\bwhat if (?:we|i|one|you)\b",
    r"\bhow about (?:we|you|i)\b",
    r"\bwhy don't (?:we|you|i)\b",
    r"\bi (?:say|think|guess|suggest|vote|propose|reckon)(?: that)? we\b",
    r"\bwho (?:goes|wants to go|takes|is going|has the|'s got the) (?:first|watch|last|map|rope|key|torch|in)\b",
    r"\bi (?:vote|suggest|propose)\b",
    r"\bour (?:plan|next move|best bet|options?)\b",
    r"\bthe plan\b",
    r"\bbefore we\b",
    r"\bcan we " + one_of("trust, really, just, go, afford, all, take, use, do, even, not, maybe, sneak") + r"\b",
    r"\bcould we (?:just|maybe|not|sneak|use|take)\b",
    r"\byou "
    + one_of("go, take, stay, distract, cover, keep, watch, sneak, check, handle")
    + " "
    + one_of(
        "first, the (?:left|right|front|back|door|rear|guard|guards|one), left, right, watch, here, him, her",
        "them, an eye, around",
    )
    + r"\b",
    r"\bi'll "
    + one_of(
        "cover, distract, go first, take (?:the )?(?:first|left|right|watch|point|rear), keep watch, scout",
        "sneak, follow you, check, handle, do the talking, stay, wait, keep an eye",
    )
    + r"\b",
    r"\bcover me\b",
    r"\bwatch my back\b",
    r"\b(?:who|wer) (?:has|hat) (?:the|den|die|das|noch) "
    + one_of(
        "map, rope, torch, key, potion, lantern, book, letter, money, gold, karte, seil, fackel, schlüssel",
        "trank, laterne, brief, geld, gold",
    )
    + r"\w*\b",
    r"\bhave we\b",
    r"\b(?:lass|lasst|lassen Sie|laßt) uns\b(?! (?:rein|durch|hinein|ein|vorbei)\b)",
    r"\b"
    + one_of(
        "sollten, sollen, wollen, müssen, müssten, werden, haben, sind, gehen, nehmen, machen, warten",
        "schleichen, reden, fragen, versuchen, teilen, brauchen, könnten",
    )
    + r" wir\b",
    r"\bwir "
    + one_of(
        "sollten, sollen, müssen, müssten, könnten, können, gehen, nehmen, machen, wollen, warten, schleichen",
        "teilen, haben, sind, werden, brauchen (?:noch|einen plan|mehr|jemand), fragen, versuchen, reden",
    )
    + r"\b",
    r"\b(?:ich (?:finde|denke|glaube|würde sagen|bin dafür|schlage|meine)) ?,? (?:dass )?(?:wir|vor)\b",
    r"\bich schlage vor\b",
    r"\bich bin dafür\b",
    r"\bwie wäre es,? wenn\b",
    r"\bwas (?:ist )?,? wenn (?:wir|ich|einer|du)\b",
    r"\bunser plan\b",
    r"\bder plan\b",
    r"\b(?:geh|nimm|bleib) du\b",
    r"\bdu (?:gehst|nimmst|bleibst|lenkst|hältst) "
    + one_of("zuerst, voran, links, rechts, die, den, hier, das, ihn, sie, wache")
    + r"\b",
    r"\bich (?:lenke|halte) (?:ihn|sie|die|wache)\b",
    r"\bgib mir deckung\b",
)
ALOUD = re.compile(
    r"\b"
    + one_of(
        "i wonder, i'm wondering, i was wondering (?:if we|whether we), let me (?:think|see), let's see",
        "note to self, talking to myself, thinking (?:out loud|aloud), just thinking",
        "where did i (?:put|leave), where was i, what was (?:his|her|that|the|its) name(?: again)?",
        "who was that again, what was i, i can't remember, i forgot, maybe i should, perhaps i should",
        "should i, i should (?:probably|really|maybe), that can't be right",
        "something (?:is|feels|'s) (?:off|wrong), this is (?:bad|weird|strange|a bad idea|not good)",
        "i have a bad feeling, that's (?:odd|strange|weird|interesting|curious)",
        "ich frage mich, ich frag mich, mal überlegen, mal sehen, lass mich (?:mal )?(?:nachdenken|überlegen)",
        "moment ,? ich überlege, wo hab(?:e)? ich, wie hieß (?:der|die|das|er|sie)",
        "wie war (?:noch|doch|gleich|das), vielleicht sollte ich, ich sollte (?:vielleicht|wohl|besser)",
        "soll ich, sollte ich, was wollte ich, ich weiß nicht mehr, seltsam, merkwürdig, komisch",
        "irgendwas stimmt",
    )
    + r"\b"
)
_ACT_VERBS = words(
    "walk, go, stride, look, draw, sneak, sit, stand, open, nod, shrug, smile, lean, grab, pick, step, move",
    "run, climb, hide, attack, swing, cast, pull, push, put, place, slide, turn, head, follow, search",
    "examine, inspect, check, watch, listen, raise, drink, light, knock, kick, throw, drop, kneel, bow, wave",
    "glance, stare, sigh, laugh, approach, enter, leave, close, reach, take, slam, whisper, wink, grin, frown",
    "wipe, order, lift, touch, study, keep, wait, make, try, hand, toss, tie, ride, crouch, press, scan",
)
_ACTS = one_of(_ACT_VERBS)
_ACTS_3RD = (
    one_of(
        _ACT_VERBS,
        "goe, reache, approache, searche, pushe, presse, crouche, touche, studie, carrie, trie, tosse, watche",
    )
    + "s"
)
_ACTS_DE = (
    one_of(
        "geh, lauf, zieh, schau, guck, blick, setz, stell, öffn, nehm, schleich, nick, zuck, lächel, lehn",
        "greif, pack, tret, kletter, versteck, duck, wirf, werf, werfe, leg, schieb, dreh, folg, durchsuch",
        "untersuch, beobacht, lausch, heb, trink, zünd, klopf, knie, verbeug, wink, starr, seufz, lach, näher",
        "betret, verlass, schließ, steck, bind, reit, steh, renn, spring, wend, mach, hol, sieht, nimmt",
        "tritt, wirft, verlässt, betritt, läuft, hält, halt, grins, zwinker, bestell, flüster, greift, kauer",
        "press, such",
    )
    + r"\w*"
)
_ADVERBS = (
    "(?:"
    + one_of(
        "slowly, quietly, carefully, then, just, quickly, also, now, simply, casually, silently, gently, calmly",
        "immediately, try to, try and, want to, am going to, begin to, start to",
    )
    + r"\s)?"
)
NARRATION = any_of(
    rf"^{_OPENERS}(?:i|we) {_ADVERBS}{_ACTS}\b(?! you\b| your\b)",
    r"^(?:my character|my guy|mein charakter|meine figur|meine charakterin)\b",
    rf"^(?:he|she|@\d+) {_ADVERBS}{_ACTS_3RD}\b",
    rf"^{_OPENERS}(?:i'm|i am|we're) (?:\w+ly )?"
    + one_of(
        "walking, going (?:to|over|up|back|outside), heading, looking (?:around|at|under|behind), drawing",
        "sneaking, sitting, moving, searching, hiding, keeping, standing, leaning",
    )
    + r"\b(?! for)",
    rf"^{_OPENERS}(?:ich|wir) {_ACTS_DE}(?: (?!du\b|dich\b|dir\b|euch\b|Sie\b))",
    f"^{_OPENERS}(?:ich|wir) (?:gehe|laufe|nicke|warte|schweige)$",
    r"^\*[^*]*\*?$",
    r"^/ me\b",
    rf"^@\d+ (?=\w+t\b){_ACTS_DE}\b",
)
WEAK_ACT = re.compile(
    r"^(?:\w+ )?(?:i|ich|we|wir) "
    + one_of(
        "take, make, keep, wait, try, leave, order",
        "nehme, mache, halte, bestelle, suche, stehe, hole, trinke, drink, go, gehe, come",
    )
    + r"\b"
)
DOUBT = any_of(
    r"\b(?:he|she|they)(?:'s|'re| is| are)? (?:definitely |clearly |obviously |totally |probably |surely |just )?"
    + one_of(
        "lying, hiding, not telling, knows? (?:more|something), looks?, seems?, sounds?, acting, suspicious",
        "shady, crazy, weird, nice, scary, funny, cute, bluffing, nervous, afraid of us",
        "a (?:liar|spy|thief|fraud|fool|creep|traitor)",
    )
    + r"\b",
    r"\bi (?:don't|do not|wouldn't|can't) (?:trust|like|believe|buy) (?:him|her|them|this guy|that guy|it)\b",
    r"\bi (?:like|trust|believe|hate|love) (?:him|her|this guy|that guy|them)\b",
    r"\bdo (?:you|we|you guys) (?:trust|believe|like|buy) (?:him|her|them|that|this guy|that guy)\b",
    r"\b(?:make|think|reckon) of (?:him|her|this guy|that guy)\b",
    r"\bshould (?:we|i) (?:trust|believe|ask|tell|pay|kill|help|follow) (?:him|her|them)\b",
    r"\b(?:this|that) (?:guy|npc|woman|fellow|bloke|dude|old man|creep)\b",
    r"\bask (?:him|her|them)\b",
    r"\btell (?:him|her|them)\b",
    r"\btalk to (?:him|her|them)\b",
    r"\b(?:he|she) (?:won't|doesn't|isn't) (?:tell|talk|trust|know|like|want|going)\w*\b",
    r"\bwhat did (?:he|she|they) (?:say|mean)\b",
    r"\bis (?:he|she) (?:lying|serious|telling)\b",
    r"\bdoes (?:he|she) (?:know|mean|want|look|seem)\b",
    r"\b(?:er|sie|der|die) "
    + one_of(
        "lügt, verheimlicht, verbirgt, weiß (?:mehr|etwas|was), wirkt, scheint, sieht, klingt",
        "ist (?:verdächtig|seltsam|komisch|nett|ein lügner|eine lügnerin|nervös|verrückt), traut",
    )
    + r"\b",
    r"\b(?:traust|traut|glaubst|glaubt|magst|mögt) (?:du|ihr) (?:ihm|ihr|dem|der|denen|ihnen)\b",
    r"\bich (?:traue|glaube|vertraue|misstraue) (?:ihm|ihr|dem|der|denen)\b",
    r"\bich mag (?:ihn|sie|den|die)\b",
    r"\b(?:haltet|hältst|denkst|denkt) (?:du|ihr) (?:von|über) (?:ihm|ihr|ihn|sie|dem|der|den)\b",
    r"\bfrag(?:t|en wir)? (?:ihn|sie|den|die)\b",
    r"\b(?:der|dieser|dem) (?:typ|kerl)\b",
    r"\bwas hat (?:er|sie) (?:gesagt|gemeint)\b",
)
TO_ALL = any_of(
    r"\b(?:anyone|anybody|someone|somebody|everyone|everybody)\b",
    r"\b(?:any|one|either|none) of you\b",
    r"\bwho (?:here|among you|of you|in here|around here)\b",
    r"\bwho (?:can|could|knows|sells|would|will|might)\b",
    r"\b"
    + one_of(
        "jemand, irgendjemand, irgendwer, wer von euch, einer von euch, eine von euch, wer hier, keiner von euch",
        "jemanden",
    )
    + r"\b",
    r"^(?:\w+ )?wer (?:kann|kennt|weiß|verkauft|könnte|hier)\b",
    r"\bkennt sich\b",
)
GREETED = re.compile(
    r"\b(?:everyone|everybody|all|folks|friends|gentlemen|zusammen|alle|allerseits|ihr lieben|leute)\b"
)


# What was said, sentence by sentence, in a form that patterns can be laid on.
#
# A sentence is its words in lower case and its punctuation, each behind one space; where somebody is named stands "@"
# and the number of the mention. "Well, Oskar, what do you think?" is `well , @0 , what do you think` with the end
# `?`. German "Sie" and "Ihr" that are not the first word keep their capital: there it tells "you" from "she".
#
# What somebody else is quoted with is left out. What the speaker says in quotation marks (`I say: "Oskar, wait!"`)
# stands for itself.


_TOKEN = re.compile(r"@\d+|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")
_ENDS = frozenset(".!?…")
_QUOTED = re.compile(r"“[^”]*”|„[^“”\"]*[“”\"]|»[^«]*«|«[^»]*»|\"[^\"]*\"|(?<!\w)[‘'][^’']{2,}[’'](?!\w)")
_SAYS_SELF = re.compile(
    r"\b(?:i|ich|we|wir) (?:\w+ )?(?:say|ask|call|shout|whisper|tell|reply|answer|sag|sage|frag|frage|ruf|rufe"
    r"|flüster|flüstere)\b"
)
_SIE = re.compile(r"(?:Sie|Ihnen|Ihr|Ihre[mnrs]?|Euch|Euer|Eure[mnrs]?)")


@dataclass(frozen=True, slots=True)
class SaidSentence:
    """
    Attributes:
        text: See the module.
        end: The sign that ends it; "" for none.
    """

    text: str
    end: str

    def mentions(self) -> list[int]:
        """The numbers of those who are named, in order."""
        return [int(number) for number in re.findall(r"@(\d+)", self.text)]


def sentences_of(text: str, places: Sequence[tuple[int, int]]) -> list[SaidSentence]:
    """
    Args:
        places: Where somebody is named, in order and apart: first character and one past the last.
    """
    marked = _marked(text, places)
    made: list[SaidSentence] = []
    tokens: list[str] = []
    for token in [*_TOKEN.findall(_unquoted(marked)), "."]:
        if token in _ENDS:
            if tokens:
                made.append(SaidSentence(" ".join(tokens), token))
            elif made and "?" in token:
                made[-1] = SaidSentence(made[-1].text, "?")
            tokens = []
        else:
            tokens.append(token if tokens and _SIE.fullmatch(token) else token.lower().replace("’", "'"))
    return made


def _marked(text: str, places: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for number, (start, end) in enumerate(places):
        pieces += [text[at:start].replace("@", " "), f" @{number} "]
        at = end
    return "".join((*pieces, text[at:].replace("@", " ")))


def _unquoted(marked: str) -> str:
    around = _QUOTED.sub(" ", marked)
    if around == marked:
        return marked
    if not re.search(r"\w", around) or _SAYS_SELF.search(around.lower()):
        return re.sub(r"[“”„»«\"]", " ", marked)
    return around


@dataclass(frozen=True, slots=True)
class Form:
    """The signs of one sentence.

    Attributes:
        second: It speaks to somebody: "you", "dein".
        others: It speaks to several: "you two", "Leute".
        question: It asks.
        order: A verb that commands stands first.
        request: It wants something of somebody: "I'd like a room".
        greeting: It greets, thanks or takes leave.
        plan: It makes plans: "we should", "lasst uns".
        talked: It asks what was talked about: "What did we agree on?".
        aloud: It thinks aloud: "I wonder".
        narration: It tells what a character does: "I walk to the bar".
        weak_act: It may tell that, or be an answer: "I take it".
        doubt: It speaks of a third person as one speaks of somebody who stands by: "he's lying".
        to_all: It asks everybody: "does anyone here ...".
        greeted_all: It greets everybody.
    """

    second: bool
    others: bool
    question: bool
    order: bool
    request: bool
    greeting: bool
    plan: bool
    talked: bool
    aloud: bool
    narration: bool
    weak_act: bool
    doubt: bool
    to_all: bool
    greeted_all: bool

    @property
    def asks_somebody(self) -> bool:
        """It wants something of one who hears it."""
        return self.second or self.question or self.order or self.request or self.greeting


def all_of(forms: Sequence[Form]) -> Form:
    """The signs of all these sentences together."""
    return Form(**{sign.name: any(getattr(form, sign.name) for form in forms) for sign in fields(Form)})


@lru_cache(1024)  # a partial transcript repeats the sentences of the one before it
def form_of(sentence: SaidSentence) -> Form:
    text = sentence.text
    request = REQUEST.search(text) is not None
    plan = PLAN.search(text) is not None
    return Form(
        second=SECOND.search(text) is not None or SECOND_OF_SIE.search(text) is not None,
        others=THE_OTHERS.search(text) is not None,
        question=sentence.end == "?" or QUESTION.search(text) is not None,
        order=ORDER.search(text) is not None,
        request=request,
        greeting=GREETING.search(text) is not None,
        plan=plan and not request,
        talked=TALKED.search(text) is not None,
        aloud=ALOUD.search(text) is not None,
        narration=NARRATION.search(text) is not None,
        weak_act=WEAK_ACT.search(text) is not None,
        doubt=DOUBT.search(text) is not None,
        to_all=TO_ALL.search(text) is not None,
        greeted_all=GREETED.search(text) is not None,
    )
