"""PostgreSQL connection strings, which may hold a password.

Messages, logs and errors only ever show the host and the database name. An unescaped special character in a password
(`#`, `/`, `?`, `@`, `[` ...) makes parts of it look like a host, a port or a database, so ambiguous strings are
rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from glyphoxa.domain.errors import InvalidInput

_SCHEMES = ("postgresql://", "postgres://")
_OF_LIBPQ = frozenset(
    {"channel_binding", "connect_timeout", "fallback_application_name", "gssencmode", "load_balance_hosts"}
    | {"keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "tcp_user_timeout"}
    | {"require_auth", "sslcompression", "sslsni"}
)
"""Options of libpq itself, which hosts add to their strings: other clients would send them to the server as settings,
which it rejects (postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS)."""
_MIN_HIDDEN = 4
_ENCODED = "%[0-9A-Fa-f]{2}"
_WORD = rf"(?:[^\x00-\x1f%#/?@\[\]]|{_ENCODED})*"
_HOST = rf"(?:\[[0-9A-Fa-f:.]+(?:%25\w+)?\]|(?:[^\x00-\x1f%#/?@\[\]:,]|{_ENCODED})*)(?::[0-9]{{1,5}})?"
_PARAMETER = rf"[A-Za-z_.]+=(?:[^\x00-\x1f%#?@\[\]&=]|{_ENCODED})*"
_FORM = re.compile(
    rf"postgres(?:ql)?://(?:{_WORD}@)?(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>{_WORD}))?"
    rf"(?:\?(?P<parameters>{_PARAMETER}(?:&{_PARAMETER})*))?"
)


_BEFORE = re.compile(
    r"(?:export\s+)?[A-Za-z_][\w.]*\s*[=:]\s*(?=[\"'`“”‘’p])|psql\s+(?:(?:-d|--dbname)[\s=]+)?|jdbc:|url\s+"
)
_AROUND = "\"'`“”„‘’‚<> \t\r\n;,\u00a0\u200b\ufeff"
_DRIVER = re.compile(r"(postgres(?:ql)?)\+\w+(?=://)")


def _copied(text: str) -> str:
    """Return a connection string without what people copy with it: blanks, quotes, `psql`, `export DATABASE_URL=`."""
    plain = text.strip(_AROUND)
    while (found := _BEFORE.match(plain)) is not None and not plain.startswith(_SCHEMES):
        plain = plain[found.end() :].strip(_AROUND)
    plain = _DRIVER.sub(r"\1", plain, count=1)
    return plain if plain.startswith(_SCHEMES) else text


@dataclass(frozen=True, slots=True)
class Dsn:
    """
    Attributes:
        text: The connection string for clients that connect, without options that only libpq knows.
        host: "" is a local socket chosen by the client.
        database: "" is the database named after the user.
        texts: `text` with each of its hosts alone.
    """

    text: str = field(repr=False)
    host: str
    database: str
    texts: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        """Host and database, such as: db.example/glyphoxa."""
        return "/".join(part for part in (self.host or "a local socket", self.database) if part)

    @classmethod
    def read(cls, text: str) -> Dsn:
        """Read a connection string, also as it is copied from a terminal, an environment file or another program.

        Raises:
            InvalidInput: The text is not a connection string or is ambiguous. The message shows nothing of it.
        """
        text = _copied(text)
        if not text.startswith(_SCHEMES):
            raise InvalidInput("must begin with postgresql:// (or none; omit it for the embedded server)")
        form = _FORM.fullmatch(text)
        ports = re.findall(r":([0-9]{1,5})(?=,|$)", form["hosts"]) if form else []
        if form is None or not all(0 < int(port) < 65_536 for port in ports):
            raise InvalidInput(
                "is not of the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE. It is not shown here because it "
                "may hold a password. In USER and PASSWORD write %23 for #, %25 for %, %2F for /, %3F for ?, "
                "%40 for @, %5B for [, %5D for ]"
            )
        given = parse_qs(form["parameters"] or "")
        hosts = re.sub(r":[0-9]+(?=,|$)", "", form["hosts"])
        database = form["database"] or (given.get("dbname") or given.get("database") or [""])[-1]
        if form["parameters"]:
            kept = [each for each in form["parameters"].split("&") if each.partition("=")[0] not in _OF_LIBPQ]
            text = text[: form.start("parameters") - 1] + ("?" + "&".join(kept) if kept else "")
        first, last = form.span("hosts")
        texts = tuple(f"{text[:first]}{host}{text[last:]}" for host in form["hosts"].split(","))
        return cls(text, unquote(hosts) or given.get("host", [""])[-1], unquote(database), texts)

    def hidden_in(self, text: str) -> str:
        """Remove the user and the password from a text, such as an error of the server."""
        user, _, password = self.text.partition("://")[2].rpartition("@")[0].partition(":")
        parameters = parse_qs(self.text.partition("?")[2])
        for name in (user, unquote(user), *parameters.get("user", ())):
            text = text.replace(f'"{name}"', '"..."')
        for secret in (password, unquote(password), *parameters.get("password", ())):
            if len(secret) >= _MIN_HIDDEN:  # anything shorter occurs inside ordinary words
                text = text.replace(secret, "...")
        return text
