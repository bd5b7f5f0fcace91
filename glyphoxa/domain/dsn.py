"""Where a PostgreSQL server is, as a user writes it. It may hold a password: of its text only the host and the name of
the database are ever shown, in messages, logs and errors alike.

A password with a character of its own meaning (`#`, `/`, `?`, `@`, `[` ...) would be read in part as a host, a port or
a database by whoever takes the text apart, and shown as such. So the text has exactly one reading, or none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from glyphoxa.domain.errors import InvalidInput

_SCHEMES = ("postgresql://", "postgres://")
_LEAST_HIDDEN = 4
_ENCODED = "%[0-9A-Fa-f]{2}"
_WORD = rf"(?:[^\x00-\x1f%#/?@\[\]]|{_ENCODED})*"
_HOST = rf"(?:\[[0-9A-Fa-f:.]+(?:%25\w+)?\]|(?:[^\x00-\x1f%#/?@\[\]:,]|{_ENCODED})*)(?::[0-9]{{1,5}})?"
_PARAMETER = rf"[A-Za-z_.]+=(?:[^\x00-\x1f%#?@\[\]&=]|{_ENCODED})*"
_FORM = re.compile(
    rf"postgres(?:ql)?://(?:{_WORD}@)?(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>{_WORD}))?"
    rf"(?:\?(?P<parameters>{_PARAMETER}(?:&{_PARAMETER})*))?"
)


@dataclass(frozen=True, slots=True)
class Dsn:
    """
    Attributes:
        text: The whole of it, for who connects.
        host: "" is a socket of this machine that the client looks for.
        database: "" is the one of the user's name.
    """

    text: str = field(repr=False)
    host: str
    database: str

    def __str__(self) -> str:
        """Such as: db.example/glyphoxa."""
        return "/".join(part for part in (self.host or "a local socket", self.database) if part)

    @classmethod
    def read(cls, text: str) -> Dsn:
        """
        Raises:
            InvalidInput: It is none, or none with one reading. The message shows nothing of it.
        """
        if not text.startswith(_SCHEMES):
            raise InvalidInput("must begin with postgresql:// (or be none, or be left out for the embedded server)")
        form = _FORM.fullmatch(text)
        ports = re.findall(r":([0-9]{1,5})(?=,|$)", form["hosts"]) if form else []
        if form is None or not all(0 < int(port) < 65_536 for port in ports):
            raise InvalidInput(
                "is no address of the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE. It is not shown here, for it "
                "may hold a password. In USER and PASSWORD write %23 for #, %25 for %, %2F for /, %3F for ?, "
                "%40 for @, %5B for [, %5D for ]"
            )
        given = parse_qs(form["parameters"] or "")
        hosts = re.sub(r":[0-9]+(?=,|$)", "", form["hosts"])
        database = form["database"] or (given.get("dbname") or given.get("database") or [""])[-1]
        return cls(text, unquote(hosts) or given.get("host", [""])[-1], unquote(database))

    def hidden_in(self, text: str) -> str:
        """A text of others, such as an error of the server, with neither the user nor the password."""
        user, _, password = self.text.partition("://")[2].rpartition("@")[0].partition(":")
        parameters = parse_qs(self.text.partition("?")[2])
        for name in (user, unquote(user), *parameters.get("user", ())):
            text = text.replace(f'"{name}"', '"..."')
        for secret in (password, unquote(password), *parameters.get("password", ())):
            if len(secret) >= _LEAST_HIDDEN:  # what is shorter is a part of any word
                text = text.replace(secret, "...")
        return text
