"""What the form of a sentence says of whom it is meant for (English and German, whatever the campaign's language).

The patterns are laid on a `SaidSentence`. Each is a sign and no proof; `glyphoxa.turns.address` weighs them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from glyphoxa.turns.sentences import SaidSentence

_OPENERS = (
    r"(?:(?:oh|so|well|and|but|now|okay|ok|ah|right|no|yes|yeah|hey|hm|hmm|uh|um|er|please|then|look|listen|sorry"
    r"|excuse me"
    r"|ja|nein|und|aber|also|ach|na|naja|äh|ähm|tja|bitte|gut|nun|dann|denn|hör mal|entschuldigung|entschuldigt"
    r"|verzeihung"
    r"|actually|honestly|guys|leute|alright|all right|hello|hallo|wait|warte|moment)\b(?: ?[,:;-])? ?)*"
)

_SECOND = re.compile(
    r"\b(?:you(?!(?: know| see)? ?(?:,|$))|you're|you've|you'd|you'll|your|yours|yourself|thee|thou|thy"
    r"|du|dich|dir|dein|deine[mnrs]?|Sie|Ihnen|Ihre?[mnrs]?|euch|euer|eure[mnrs]?|Euch|Euer|Eure[mnrs]?)\b"
    r"|\b(?:habt|seid|könnt|wollt|wisst|kennt|sagt|macht|braucht|mögt|müsst|dürft|sollt|werdet|würdet|könntet|hättet"
    r"|wärt"
    r"|glaubt|meint|denkt|verkauft|sucht|lebt|wohnt|arbeitet|kommt|geht|seht|hört|tragt|gebt|nehmt|wart|hattet|tut"
    r"|steht"
    r"|heißt|verlangt|führt|bietet|schmiedet) ihr\b|\bihr (?:habt|seid|könnt|wollt|wisst|kennt|müsst|dürft|sollt)\b"
    r"|^(?:kennst|hast|weißt|kannst|bist|willst|magst|würdest|könntest|glaubst|machst|brauchst|siehst|hörst) "
)
_SECOND_OF_SIE = re.compile(r"\b(?:\w+en|sind) (?:Sie)\b")
_THE_OTHERS = re.compile(
    r"\byou (?:guys|lot|all|two|three|both)\b|\by'all\b|\b(?:ihr|euch|euer) (?:beiden?|alle|allen|zwei|drei|leute)\b"
    r"|\bguys\b|\bleute\b|\bfolks\b|\bfreunde\b|\bfriends\b|\beveryone (?:ready|agree|in|okay|ok)\b"
)
_QUESTION = re.compile(
    rf"^{_OPENERS}(?:what|what's|where|where's|who|who's|why|how|how's|when|which|whose|is|are|do|does|did|can|could"
    rf"|would"
    r"|will|have|has|may|might|shall|should|am|was (?:ist|hat|kostet|macht|willst|wollt|meinst|meint|weißt|wisst|kannst"
    r"|gibt|habt|hast|führt|sagst|sagt|verkauft|verlangt|verlangst|denkst|denkt|für|brauchst|braucht)|wo|wer|wie|wann"
    r"|warum|wieso|weshalb|wohin|woher|wem|wen|welche[mnrs]?|wieviel|woran|wovon|gibt es|gibt's|hast|habt|haben|kannst"
    r"|könnt|können|könnten|könntet|könntest|kann ich|kann man|darf ich|weißt|wisst|wissen|kennst|kennt|kennen|bist"
    r"|seid"
    r"|sind|ist|willst|wollt|wollen Sie|würdest|würdet|würden|magst|mögt|dürfen|werdet|wirst|glaubst|glaubt|steht)\b"
)
_ORDER = re.compile(
    rf"^{_OPENERS}(?:don't |do not |just |only |first |nicht )?(?:tell|give|come|go|wait|stop|listen|help|get|take"
    rf"|let me|let us"
    r"|follow|show|bring|hold|run|be|look|leave|make|mend|fix|repair|sell|put|open|close|keep|pour|serve|fetch|say"
    r"|speak"
    r"|explain|describe|calm|sit|stand|stay|step|drop|hand|pass|read|sing|play|heal|bless|name|try|think|remember"
    r"|forget"
    r"|trust|spare|lower|move|point|lead|teach|send|lend|swear|promise|answer|talk|wake|drink|eat|have a|mind|tell|ask"
    r"|komm|kommt|gib|gebt|sag|sagt|geh|geht|warte|wartet|halt|haltet|schau|schaut|hör|hört|hilf|helft|nimm|nehmt|lass"
    r"|lasst|zeig|zeigt|lauf|lauft|bring|bringt|erzähl|erzählt|erklär|erklärt|bleib|bleibt|mach|macht|setz|setzt|steh"
    r"|sei|seid|sprich|sprecht|rede|redet|verkauf|öffne|öffnet|schließ|schweig|schweigt|beruhig|leg|legt|hol|holt|lies"
    r"|sing|singt|spiel|trink|trinkt|verzeih|verzeiht|antworte|antwortet|schwör|überleg|denk|vergiss|führ|führt"
    r"|(?:\w+en) Sie)\b"
)
_REQUEST = re.compile(
    r"\b(?:i'd like|i would like|i'd love|i need (?:a|an|some|your|to (?:buy|rent|speak|talk to you))|i want (?:a|an"
    r"|some|to (?:buy|rent|hire|sell))"
    r"|we need (?:a|an|some|two|three|four|five|rooms?|beds?|your)|we'd like|we would like|i'll (?:have"
    r"|take)(?! (?:the )?(?:left|right|first|rear|point|watch|front|back|one)\b)|we'll (?:have|take)|we want (?:a"
    r"|two|three|to (?:buy|rent|sell))"
    r"|i'm looking for|i am looking for|we're looking for|we are looking for|i've come (?:to|for|about)"
    r"|i'm here (?:to|for|about)|i have come"
    r"|(?:can|could|may|might) (?:i|we) (?:please )?(?:get|have|buy|rent|see|stay|speak|talk to you|ask|sleep|borrow"
    r"|sit|come in|leave|trade|order)"
    r"|ich (?:hätte|möchte|brauche|bräuchte|suche|will|würde)(?: \w+)? (?:gern|gerne|ein|eine|einen|zwei|etwas"
    r"|neue[nrs]?)"
    r"|ich (?:hätte|möchte) gern|wir (?:hätten|möchten|suchen|bräuchten|brauchen (?:ein|eine|einen|zwei|drei|vier"
    r"|etwas))"
    r"|(?:kann|könnte|darf|dürfte) ich|(?:können|könnten|dürfen|dürften) wir (?:bitte |hier )?(?:ein|eine|einen|zwei"
    r"|hier|bei)"
    r"|ich (?:nehme|nehm)|wir nehmen)\b|(?:\bplease|\bbitte)$|^(?:one|two|three|a|an|ein|eine|einen|zwei|drei"
    r"|noch ein|noch eine|noch zwei) [^,]*, (?:please|bitte)$"
)
_GREETING = re.compile(
    rf"^{_OPENERS}(?:hello|hi|hey|greetings|good (?:morning|evening|day|afternoon|night|morrow)|well met|welcome"
    rf"|farewell"
    r"|goodbye|thank you|thanks|many thanks|hallo|guten (?:abend|morgen|tag)|gute nacht|grüß|grüße|seid gegrüßt"
    r"|sei gegrüßt"
    r"|servus|moin|danke|vielen dank|habt dank|auf wiedersehen|lebt wohl|leb wohl)\b"
)
_PLAN = re.compile(
    r"\b(?:let's|lets|let us)(?! (?:in|through|pass|go with you)\b)|\b(?:should|shall|do|are|did|have|will|were|must"
    r"|would) we\b"
    r"|\bwe (?:should|could|can|must|have to|need to|needs? (?:a plan|more|someone|somebody)|ought|might|better|go"
    r"|split|take|will|'ll|try|sneak|wait|attack|rest|still|just|don't|can't|"
    r"won't|already|never|agreed|were|are|do|did)\b|\bwe(?:'ll|'re|'d better)\b"
    r"|\bwhat if (?:we|i|one|you)\b|\bhow about (?:we|you|i)\b|\bwhy don't (?:we|you|i)\b|\bi (?:say|think|guess"
    r"|suggest|vote|propose|reckon)(?: that)? we\b|\bwho (?:goes|wants to go|takes|is going|has the"
    r"|'s got the) (?:first|watch|last|map|rope|key|torch|in)\b"
    r"|\bi (?:vote|suggest|propose)\b|\bour (?:plan|next move|best bet|options?)\b|\bthe plan\b|\bbefore we\b"
    r"|\bcan we (?:trust|really|just|go|afford|all|take|use|do|even|not|maybe|sneak)\b|\bcould we (?:just|maybe|not"
    r"|sneak|use|take)\b"
    r"|\byou (?:go|take|stay|distract|cover|keep|watch|sneak|check|handle) (?:first|the (?:left|right|front|back"
    r"|door|rear|guard|guards|one)|left|right|watch|here|him|her|them|an eye|around)\b|\bi'll (?:cover|distract"
    r"|go first|take (?:the )?(?:first|left|right|watch|point|rear)|keep watch|scout|sneak|follow you|check|handle"
    r"|do the talking|stay|wait|keep an eye)\b"
    r"|\bcover me\b|\bwatch my back\b|\b(?:who|wer) (?:has|hat) (?:the|den|die|das|noch) (?:map|rope|torch|key"
    r"|potion|lantern|book|letter|money|gold|karte|seil|fackel|schlüssel|trank|laterne|brief|geld|gold)\w*\b"
    r"|\bhave we\b"
    r"|\b(?:lass|lasst|lassen Sie|laßt) uns\b(?! (?:rein|durch|hinein|ein|vorbei)\b)|\b(?:sollten|sollen|wollen"
    r"|müssen|müssten|werden|haben|sind|gehen|nehmen|machen|warten|schleichen|reden|fragen|versuchen|teilen|brauchen"
    r"|könnten) wir\b|\bwir (?:sollten|sollen|müssen|müssten|könnten|können|gehen|nehmen|machen|wollen|warten"
    r"|schleichen|teilen|haben|sind|werden|brauchen (?:noch|einen plan|mehr|jemand)|fragen|versuchen|reden)\b"
    r"|\b(?:ich (?:finde|denke|glaube|würde sagen|bin dafür|schlage|meine)) ?,? (?:dass )?(?:wir|vor)\b"
    r"|\bich schlage vor\b|\bich bin dafür\b|\bwie wäre es,? wenn\b|\bwas (?:ist )?,? wenn (?:wir|ich|einer|du)\b"
    r"|\bunser plan\b|\bder plan\b|\b(?:geh|nimm|bleib) du\b|\bdu (?:gehst|nimmst|bleibst|lenkst|hältst) (?:zuerst"
    r"|voran|links|rechts|die|den|hier|das|ihn|sie|wache)\b|\bich (?:lenke|halte) (?:ihn|sie|die|wache)\b"
    r"|\bgib mir deckung\b"
)
_ALOUD = re.compile(
    r"\b(?:i wonder|i'm wondering|i was wondering (?:if we|whether we)|let me (?:think|see)|let's see|note to self"
    r"|talking to myself|thinking (?:out loud|aloud)|just thinking|"
    r"where did i (?:put|leave)|where was i|what was (?:his|her|that|the|its) name(?: again)?|who was that again"
    r"|what was i|i can't remember|i forgot|maybe i should|perhaps i should|should i|i should (?:probably|really"
    r"|maybe)|"
    r"that can't be right|something (?:is|feels|'s) (?:off|wrong)|this is (?:bad|weird|strange|a bad idea|not good)"
    r"|i have a bad feeling|that's (?:odd|strange|weird|interesting|curious)|"
    r"ich frage mich|ich frag mich|mal überlegen|mal sehen|lass mich (?:mal )?(?:nachdenken|überlegen)"
    r"|moment ,? ich überlege|wo hab(?:e)? ich|wie hieß (?:der|die|das|er|sie)|wie war (?:noch|doch|gleich|das)"
    r"|vielleicht sollte ich|ich sollte (?:vielleicht|wohl|besser)|soll ich|sollte ich|was wollte ich"
    r"|ich weiß nicht mehr|seltsam|merkwürdig|komisch|irgendwas stimmt)\b"
)
_ACT_VERBS = [
    "walk",
    "go",
    "stride",
    "look",
    "draw",
    "sneak",
    "sit",
    "stand",
    "open",
    "nod",
    "shrug",
    "smile",
    "lean",
    "grab",
    "pick",
    "step",
    "move",
    "run",
    "climb",
    "hide",
    "attack",
    "swing",
    "cast",
    "pull",
    "push",
    "put",
    "place",
    "slide",
    "turn",
    "head",
    "follow",
    "search",
    "examine",
    "inspect",
    "check",
    "watch",
    "listen",
    "raise",
    "drink",
    "light",
    "knock",
    "kick",
    "throw",
    "drop",
    "kneel",
    "bow",
    "wave",
    "glance",
    "stare",
    "sigh",
    "laugh",
    "approach",
    "enter",
    "leave",
    "close",
    "reach",
    "take",
    "slam",
    "whisper",
    "wink",
    "grin",
    "frown",
    "wipe",
    "order",
    "lift",
    "touch",
    "study",
    "keep",
    "wait",
    "make",
    "try",
    "hand",
    "toss",
    "tie",
    "ride",
    "crouch",
    "press",
    "scan",
]
_ACTS = rf"(?:{'|'.join(_ACT_VERBS)})"
_ACTS_3RD = (
    rf"(?:{'|'.join(_ACT_VERBS)}|goe|reache|approache|searche|pushe|presse|crouche|touche|studie|carrie|trie|tosse"
    rf"|watche)s"
)
_ACTS_DE = (
    r"(?:geh|lauf|zieh|schau|guck|blick|setz|stell|öffn|nehm|schleich|nick|zuck|lächel|lehn|greif|pack|tret|kletter"
    r"|versteck|duck|wirf|werf|werfe|leg|schieb|dreh|folg|durchsuch|untersuch|beobacht|lausch|heb|trink|zünd|klopf"
    r"|knie|verbeug|wink|starr|seufz|lach|näher|betret|verlass|schließ|steck|bind|reit|steh|renn|spring|wend|mach"
    r"|hol|sieht|nimmt|tritt|wirft|verlässt|betritt|läuft|hält|halt|grins|zwinker|bestell|flüster|greift|kauer|press"
    r"|such)\w*"
)
_ADVERBS = (
    r"(?:(?:slowly|quietly|carefully|then|just|quickly|also|now|simply|casually|silently|gently|calmly|immediately"
    r"|try to|try and|want to|am going to|begin to|start to)\s)?"
)
_NARRATION = re.compile(
    rf"^{_OPENERS}(?:i|we) {_ADVERBS}{_ACTS}\b(?! you\b| your\b)|^(?:my character|my guy|mein charakter|meine figur"
    rf"|meine charakterin)\b"
    rf"|^(?:he|she|@\d+) {_ADVERBS}{_ACTS_3RD}\b|^{_OPENERS}(?:i'm|i am|we're) (?:\w+ly )?(?:walking|going (?:to"
    rf"|over|up|back|outside)|heading|looking (?:around|at|under|behind)|drawing|sneaking|sitting|moving|searching"
    rf"|hiding|keeping|standing|leaning)\b(?! for)"
    rf"|^{_OPENERS}(?:ich|wir) {_ACTS_DE}(?: (?!du\b|dich\b|dir\b|euch\b|Sie\b))|^{_OPENERS}(?:ich|wir) (?:gehe"
    rf"|laufe|nicke|warte|schweige)$"
    rf"|^\*[^*]*\*?$|^/ me\b|^@\d+ (?=\w+t\b){_ACTS_DE}\b"
)
_WEAK_ACT = re.compile(
    r"^(?:\w+ )?(?:i|ich|we|wir) (?:take|make|keep|wait|try|leave|order|nehme|mache|halte|bestelle|suche|stehe|hole"
    r"|trinke|drink|go|gehe|come)\b"
)
_DOUBT = re.compile(
    r"\b(?:he|she|they)(?:'s|'re| is| are)? (?:definitely |clearly |obviously |totally |probably |surely "
    r"|just )?(?:lying|hiding|not telling|knows? (?:more|something)|looks?|seems?|sounds?|acting|suspicious|shady"
    r"|crazy|weird|nice|scary|funny|cute|bluffing|nervous|afraid of us|a (?:liar|spy|thief|fraud|fool|creep|traitor))\b"
    r"|\bi (?:don't|do not|wouldn't|can't) (?:trust|like|believe|buy) (?:him|her|them|this guy|that guy|it)\b"
    r"|\bi (?:like|trust|believe|hate|love) (?:him|her|this guy|that guy|them)\b"
    r"|\bdo (?:you|we|you guys) (?:trust|believe|like|buy) (?:him|her|them|that|this guy|that guy)\b|\b(?:make|think"
    r"|reckon) of (?:him|her|this guy|that guy)\b|\bshould (?:we|i) (?:trust|believe|ask|tell|pay|kill|help"
    r"|follow) (?:him|her|them)\b"
    r"|\b(?:this|that) (?:guy|npc|woman|fellow|bloke|dude|old man|creep)\b|\bask (?:him|her|them)\b|\btell (?:him"
    r"|her|them)\b|\btalk to (?:him|her|them)\b|\b(?:he|she) (?:won't|doesn't|isn't) (?:tell|talk|trust|know|like"
    r"|want|going)\w*\b|\bwhat did (?:he|she|they) (?:say|mean)\b|\bis (?:he|she) (?:lying|serious|telling)\b"
    r"|\bdoes (?:he|she) (?:know|mean|want|look|seem)\b"
    r"|\b(?:er|sie|der|die) (?:lügt|verheimlicht|verbirgt|weiß (?:mehr|etwas|was)|wirkt|scheint|sieht|klingt"
    r"|ist (?:verdächtig|seltsam|komisch|nett|ein lügner|eine lügnerin|nervös|verrückt)|traut)\b|\b(?:traust|traut"
    r"|glaubst|glaubt|magst|mögt) (?:du|ihr) (?:ihm|ihr|dem|der|denen|ihnen)\b|\bich (?:traue|glaube|vertraue"
    r"|misstraue) (?:ihm|ihr|dem|der|denen)\b|\bich mag (?:ihn|sie|den|die)\b|\b(?:haltet|hältst|denkst|denkt) (?:du"
    r"|ihr) (?:von|über) (?:ihm|ihr|ihn|sie|dem|der|den)\b|\bfrag(?:t|en wir)? (?:ihn|sie|den|die)\b|\b(?:der|dieser"
    r"|dem) (?:typ|kerl)\b|\bwas hat (?:er|sie) (?:gesagt|gemeint)\b"
)
_TO_ALL = re.compile(
    r"\b(?:anyone|anybody|someone|somebody|everyone|everybody)\b|\b(?:any|one|either|none) of you\b|\bwho (?:here"
    r"|among you|of you|in here|around here)\b|\bwho (?:can|could|knows|sells|would|will|might)\b"
    r"|\b(?:jemand|irgendjemand|irgendwer|wer von euch|einer von euch|eine von euch|wer hier|keiner von euch"
    r"|jemanden)\b|^(?:\w+ )?wer (?:kann|kennt|weiß|verkauft|könnte|hier)\b|\bkennt sich\b"
)
_GREETED = re.compile(
    r"\b(?:everyone|everybody|all|folks|friends|gentlemen|zusammen|alle|allerseits|ihr lieben|leute)\b"
)


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
    request = _REQUEST.search(text) is not None
    plan = _PLAN.search(text) is not None
    return Form(
        second=_SECOND.search(text) is not None or _SECOND_OF_SIE.search(text) is not None,
        others=_THE_OTHERS.search(text) is not None,
        question=sentence.end == "?" or _QUESTION.search(text) is not None,
        order=_ORDER.search(text) is not None,
        request=request,
        greeting=_GREETING.search(text) is not None,
        plan=plan and not request,
        aloud=_ALOUD.search(text) is not None,
        narration=_NARRATION.search(text) is not None,
        weak_act=_WEAK_ACT.search(text) is not None,
        doubt=_DOUBT.search(text) is not None,
        to_all=_TO_ALL.search(text) is not None,
        greeted_all=_GREETED.search(text) is not None,
    )
