"""Links and cookies prove a role for a limited time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.access.links import (
    CODE_VALID_S,
    COOKIE_VALID_S,
    KEY_BYTES,
    BadInvitation,
    Invitations,
)
from glyphoxa.web.access.roles import Action, Grant, Grants, Role

INVITATIONS = Invitations(key=b"k" * KEY_BYTES)
MIRA = Grant(Role.PLAYER, PlayerId("mira"))
DM = Grant(Role.DM)
GRANTS = st.one_of(
    st.sampled_from([Grant(Role.DM), Grant(Role.SPECTATOR)]),
    st.builds(lambda name: Grant(Role.PLAYER, PlayerId(name)), st.text(min_size=1, max_size=30)),
)
NOW = 1_800_000_000
NOBODY = Grants(frozenset())


@given(GRANTS.filter(lambda grant: grant.role is not Role.DM))
def test_a_link_grants_what_it_was_made_for_and_stays_good(grant: Grant) -> None:
    token = INVITATIONS.token(grant)
    assert token == INVITATIONS.token(grant)
    assert INVITATIONS.redeemed(token, now_s=NOW) == (INVITATIONS, grant)


@given(GRANTS)
def test_a_cookie_grants_what_it_was_made_for_until_it_is_too_old(grant: Grant) -> None:
    cookie = INVITATIONS.cookie(grant, now_s=NOW)
    assert INVITATIONS.grant_of(cookie, now_s=NOW + COOKIE_VALID_S - 1) == grant
    assert INVITATIONS.grant_of(cookie, now_s=NOW + COOKIE_VALID_S) is None


@given(GRANTS, st.data())
def test_changed_token_is_invalid(grant: Grant, data: st.DataObject) -> None:
    """But for the last one: two of its six bits are beyond the 256 of the signature, and are not compared."""
    cookie = INVITATIONS.cookie(grant, now_s=NOW)
    at = data.draw(st.integers(0, len(cookie) - 2))
    other = data.draw(st.characters(max_codepoint=0x17F).filter(lambda c: c != cookie[at]))
    assert INVITATIONS.grant_of(cookie[:at] + other + cookie[at + 1 :], now_s=NOW) is None


@given(st.text(max_size=600) | st.text("abcXYZ019-_.", max_size=200))
def test_invented_token_grants_nothing(text: str) -> None:
    assert INVITATIONS.grant_of(text, now_s=NOW) is None
    with pytest.raises(BadInvitation):
        INVITATIONS.redeemed(text, now_s=NOW)


@given(GRANTS)
def test_a_link_is_no_cookie_and_a_cookie_no_link(grant: Grant) -> None:
    assert INVITATIONS.grant_of(INVITATIONS.token(grant), now_s=NOW) is None
    with pytest.raises(BadInvitation):
        INVITATIONS.redeemed(INVITATIONS.cookie(grant, now_s=NOW), now_s=NOW)


def test_another_campaigns_key_makes_other_links() -> None:
    other = Invitations(key=b"o" * KEY_BYTES)
    with pytest.raises(BadInvitation):
        other.redeemed(INVITATIONS.token(MIRA), now_s=NOW)
    assert other.grant_of(INVITATIONS.cookie(MIRA, now_s=NOW), now_s=NOW) is None


def test_revoking_a_grant_invalidates_only_its_links_and_cookies() -> None:
    token, cookie = INVITATIONS.token(MIRA), INVITATIONS.cookie(MIRA, now_s=NOW)
    other = INVITATIONS.cookie(Grant(Role.SPECTATOR), now_s=NOW)
    revoked = INVITATIONS.revoked(MIRA)
    with pytest.raises(BadInvitation):
        revoked.redeemed(token, now_s=NOW)
    assert revoked.grant_of(cookie, now_s=NOW) is None
    assert revoked.grant_of(other, now_s=NOW) == Grant(Role.SPECTATOR)
    assert revoked.redeemed(revoked.token(MIRA), now_s=NOW)[1] == MIRA


def test_the_game_masters_link_is_good_once() -> None:
    invited, token = INVITATIONS.with_dm_code("c" * 32, now_s=NOW)
    used, grant = invited.redeemed(token, now_s=NOW + 5)
    assert grant == DM
    with pytest.raises(BadInvitation):
        used.redeemed(token, now_s=NOW + 5)
    assert used.grant_of(used.cookie(DM, now_s=NOW), now_s=NOW) == DM


def test_the_game_masters_link_is_good_for_a_day() -> None:
    invited, token = INVITATIONS.with_dm_code("c" * 32, now_s=NOW)
    with pytest.raises(BadInvitation):
        invited.redeemed(token, now_s=NOW + CODE_VALID_S)
    later, _ = invited.with_dm_code("d" * 32, now_s=NOW + CODE_VALID_S)
    assert len(later.codes) == 1, "codes that are too old are not kept"


def test_stored_file_contains_no_code() -> None:
    invited, _ = INVITATIONS.with_dm_code("c" * 32, now_s=NOW)
    assert "c" * 32 not in str(invited.codes)


def test_revoking_the_game_master_invalidates_unused_links() -> None:
    invited, token = INVITATIONS.with_dm_code("c" * 32, now_s=NOW)
    with pytest.raises(BadInvitation):
        invited.revoked(DM).redeemed(token, now_s=NOW)


# Who may do what


def test_a_player_has_their_own_seat_alone_and_the_game_master_has_all() -> None:
    mira = Grants(frozenset({MIRA}))
    assert mira.may(Action.PLAY, PlayerId("mira"))
    assert not mira.may(Action.PLAY, PlayerId("osk"))
    assert Grants(frozenset({DM})).may(Action.PLAY, PlayerId("osk"))


def test_user_with_two_links_has_the_rights_of_both() -> None:
    both = Grants(frozenset({MIRA, Grant(Role.SPECTATOR)}))
    assert both.role is Role.PLAYER
    assert both.may(Action.PLAY, PlayerId("mira"))
    assert NOBODY.role is None
