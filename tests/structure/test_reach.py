"""What the reachability check sees, and what it does not."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.support.reach import Reach


def unreached(*roots: str, **modules: str) -> list[str]:
    return Reach({name: dedent(text) for name, text in modules.items()}).unreached_from(roots or ["app:main"])


def test_what_the_root_calls_is_reached_and_the_rest_is_not() -> None:
    app = """
    def main(): helper()
    def helper(): pass
    def left_over(): pass
    """
    assert unreached(app=app) == ["app:left_over"]


def test_what_only_unreached_code_uses_is_unreached_too() -> None:
    app = """
    LIMIT = 3
    def main(): pass
    def one(): two()
    def two(): one(); return LIMIT
    """
    assert unreached(app=app) == ["app:LIMIT", "app:one", "app:two"]


def test_an_import_alone_reaches_a_module_and_nothing_in_it() -> None:
    assert unreached(app="import tools\ndef main(): pass", tools="def f(): pass", lost="x = 1") == ["lost:", "tools:f"]


def test_a_name_is_followed_through_the_imports_to_the_one_that_is_meant() -> None:
    app = """
    from tools import f as g
    def main(): g()
    """
    assert unreached(app=app, tools="from deep import f", deep="def f(): pass", other="def f(): pass") == ["other:"]


def test_what_a_library_has_is_no_member_of_a_class() -> None:
    app = """
    import re
    class Index:
        def search(self): pass
    def main(): Index(); re.search("a", "b")
    """
    assert unreached(app=app) == ["app:Index.search"]


def test_a_member_needs_its_class_and_a_mention() -> None:
    app = """
    class Used:
        size: int
        def asked(self): pass
        def never(self): pass
    class Unused:
        def asked(self): pass
    def main(): Used(size=1).asked()
    """
    assert unreached(app=app) == ["app:Unused", "app:Used.never", "app:Used.size"]


def test_a_field_is_read_by_its_place_in_a_pattern() -> None:
    app = """
    class Spoke:
        npc: str
        at_ms: int
    def main(event):
        match event:
            case Spoke(_, at_ms): pass
    """
    assert unreached(app=app) == ["app:Spoke.npc"]


def test_what_a_library_or_a_decorator_calls_is_reached() -> None:
    app = """
    import argparse
    from functools import cache
    class Version(argparse.Action):
        def __call__(self, *_): pass
        def format_usage(self): pass
        def own(self): pass
    @register
    def route(): pass
    @cache
    def forgotten(): pass
    def main(): Version()
    """
    assert unreached(app=app) == ["app:Version.own", "app:forgotten"]


@pytest.mark.parametrize(
    ("used", "lost"),
    [("Kind(text)", []), ("[each.value for each in Kind]", []), ("text is Kind", ["app:Kind.NPC"])],
)
def test_the_values_of_an_enumeration_are_reached_where_it_makes_them(used: str, lost: list[str]) -> None:
    app = f"from enum import Enum\nclass Kind(Enum):\n    NPC = 'npc'\ndef main(text): return {used}"
    assert unreached(app=app) == lost


@pytest.mark.parametrize("named", ['"verbs.serve:run"', 'load("verbs.serve").run', 'load(f"verbs.{verb}").run'])
def test_a_module_that_is_named_in_a_string_is_reached(named: str) -> None:
    app = f"VERBS = ('serve',)\ndef main(verb): return VERBS, {named}"
    assert Reach({"app": app, "verbs.serve": "def run(): pass"}).unreached_from(["app:main"]) == []


def test_a_root_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError):
        unreached("app:missing", app="def main(): pass")
