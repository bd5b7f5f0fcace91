"""Verbs whose past is another word: who asks "What did I steal?" looks for "I stole an apple"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ENGLISH: Final = """
bear bore borne|beat beaten|become became|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled
blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught
choose chose chosen|cling clung|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|fight fought|flee fled
fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
give gave given|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt
know knew known|lead led|leave left|lend lent|lose lost|make made|mean meant|meet met
mistake mistook mistaken|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said
see saw seen|seek sought|sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sleep slept|slide slid|speak spoke spoken|spend spent
spin spun|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept
swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
wind wound|withdraw withdrew withdrawn|write wrote written
"""


def _forms(table: str) -> Mapping[str, str]:
    verbs = (verb.split() for line in table.split("\n") for verb in line.split("|"))
    return {form: verb[0] for verb in verbs if verb for form in verb[1:]}


IRREGULAR: Final[Mapping[str, Mapping[str, str]]] = {"en": _forms(_ENGLISH)}
"""By language: forms that a stemmer does not know, each with its verb. Forms that are words of their own ("left",
"wound", "bore", "found") stand for the verb as well: both the question and the talk have them so.
"""
