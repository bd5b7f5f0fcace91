"""`glyphoxa campaign prompt`: how every prompt of an NPC begins. Nothing is changed, and no model is asked."""

from __future__ import annotations

import argparse

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.context.beginning import beginning
from glyphoxa.context.bible import Bible
from glyphoxa.context.budgets import Budgets
from glyphoxa.context.identity import Identities
from glyphoxa.context.known_sentences import KnownSentences
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prompt import Message, Prompt, with_hot_context
from glyphoxa.context.tokens import tokens_of
from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.knowledge import AUTO_ACCEPT


async def prompt(options: argparse.Namespace) -> int:
    campaign = read_campaign(options.file).campaign
    npc = npc_called(options.npc, campaign)
    identities = Identities(campaign, None, tokens=Budgets().identity_tokens, accept_at=AUTO_ACCEPT)
    await identities.read(npc.id)
    identity = identities.last(npc.id)
    bible = Bible(campaign, KnownSentences(campaign, lambda _npc: None), tokens=Budgets().bible_tokens)
    asked = Prompt(npc.id, (*beginning(campaign, npc), Message("user", "")), "", "")
    *shown, _ = with_hot_context(asked, HotContext(identity=(*bible.lines(npc.id), *identity.lines))).messages
    print("\n\n".join(f"[{message.role}]\n{message.content}" for message in shown))
    n_tokens = sum(tokens_of(message.content) for message in shown)
    print(f"\nAbout {n_tokens} tokens stand in front of all talk, as the file has it.")
    if not npc.examples:
        print(f"The examples are default ones: `examples:` under {npc.name!r} in the file replaces them.")
    if identity.secrets:
        print("Only where the talk comes to it, and marked to be kept:")
        for secret in identity.secrets:
            print(f"  {secret.told.text}")
    return 0


def npc_called(name: str, campaign: Campaign) -> Npc:
    """
    Raises:
        NotFound: Nobody under `npcs:` has that name, alias or id.
    """
    wanted = name.casefold()
    for npc in campaign.npcs:
        if wanted in (npc.id, npc.name.casefold(), *(alias.casefold() for alias in npc.aliases)):
            return npc
    raise NotFound(f"no NPC {name!r} in {campaign.name!r}, {did_you_mean(name, (npc.name for npc in campaign.npcs))}")
