"""What models want before a text to tell questions from what they shall find."""

from __future__ import annotations

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    found: str = ""
    question: str = ""


_GEMMA = Prefixes("title: none | text: ", "task: search result | query: ")
_KNOWN = (
    # ai.google.dev/gemini-api/docs/embeddings: this one takes no task type, but a text that names its task
    (re.compile(r"gemini-embedding-[2-9]"), _GEMMA),
    # and so does its small sister: the model card of google/embeddinggemma-300m
    (re.compile(r"embedding-?gemma"), _GEMMA),
    # model card of nomic-ai/nomic-embed-text-v1.5; Ollama adds nothing by itself
    (re.compile(r"nomic-embed-text"), Prefixes("search_document: ", "search_query: ")),
    # model card of intfloat/multilingual-e5-base
    (re.compile(r"(^|[^a-z])e5-(small|base|large)(?!.*instruct)"), Prefixes("passage: ", "query: ")),
)


def prefixes_of(model: str) -> Prefixes:
    """By the model's name; none for a model that is not known to want any.

    >>> prefixes_of("nomic-embed-text:latest").question
    'search_query: '
    """
    return next((prefixes for name, prefixes in _KNOWN if name.search(model.lower())), Prefixes())
