"""`glyphoxa worker`: reads talk in the background, in a process of its own."""

from __future__ import annotations

import argparse
from contextlib import AsyncExitStack

from glyphoxa.bootstrap.chronicle import chronicle_worker
from glyphoxa.bootstrap.talk_readers import open_talk_readers
from glyphoxa.cli.retention import erasing_daily
from glyphoxa.cli.scope import CONFIG, campaign_argument, opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import Verb, in_a_loop

VERB = Verb(in_a_loop)


@VERB.itself(
    campaign_argument("--campaign", otherwise="else the talk of all"),
    CONFIG,
    text="Turns what is said into knowledge as soon as it is kept, until it is stopped. Any number may run, on any "
    "machine that reaches the database: each session is read by one of them at a time, each utterance is read once.",
)
async def _run(options: argparse.Namespace) -> int:
    settings = settings_with_memory(options.config, to_hold="talk")
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings))
        readers = await open_talk_readers(settings, stack)
        campaign = None if options.campaign is None else await stored_campaign(store, options.campaign)
        print("reading what is said; Ctrl-C ends it", flush=True)
        async with erasing_daily(store, settings, campaign):
            await chronicle_worker(store, campaign, readers=readers).run()
    return 0
