"""Certificates for https: the user's own, or one that is generated."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.files import open_private

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, GeneralName

GOOD_FOR = timedelta(days=825)
"""Apple's systems refuse certificates that are good for longer."""
RENEWED_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate and its key as PEM files.

    Attributes:
        certificate: With its chain.
    """

    certificate: Path
    key: Path


def given(certificate: Path | None, key: Path | None) -> Tls | None:
    """Check the user's own certificate; None if there is none.

    Raises:
        InvalidInput: One of the files is missing, cannot be read, or does not belong to the other.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InvalidInput("https needs both files: --tls-cert with the certificate, and --tls-key with its key")
    for path in (certificate, key):
        if not path.is_file():
            raise InvalidInput(f"{path}: there is no such file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError, _Encrypted) as error:
        raise InvalidInput(f"{certificate} and {key} are not a certificate and its key (PEM): {error}") from error
    return Tls(certificate, key)


def good_until(certificate: Path | None, key: Path | None) -> datetime | None:
    """Return when the user's own certificate expires; None if there is none. As `given`."""
    tls = given(certificate, key)
    return None if tls is None else _loaded(tls).not_valid_after_utc


def self_signed(directory: Path, hosts: Iterable[str], *, now: datetime | None = None) -> Tls:
    """Return the generated certificate; make a new one if hosts changed or it expires soon.

    Args:
        directory: Where it is kept, for this user alone.
        hosts: DNS names and addresses under which the page is opened.

    Raises:
        InvalidInput: It cannot be kept there.
    """
    now = now or datetime.now(UTC)
    wanted = sorted({*hosts, "localhost", "127.0.0.1", "::1"})
    made = Tls(directory / "certificate.pem", directory / "key.pem")
    if not _is_good(made, wanted, now):
        _make(made, wanted, now)
    return made


def fingerprint(tls: Tls) -> str:
    """Return the SHA-256 of the certificate, as browsers show it."""
    from cryptography.hazmat.primitives import hashes

    return _loaded(tls).fingerprint(hashes.SHA256()).hex(":").upper()


def _is_good(tls: Tls, wanted: list[str], now: datetime) -> bool:
    from cryptography import x509

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
        certificate = _loaded(tls)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    held = {str(name.value) for name in names}
    return held >= set(wanted) and certificate.not_valid_after_utc - RENEWED_BEFORE > now


def _loaded(tls: Tls) -> Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(tls.certificate.read_bytes())


def _make(tls: Tls, hosts: list[str], now: datetime) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Glyphoxa")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # a player's clock may be late
        .not_valid_after(now + GOOD_FOR)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        for path, content in ((tls.key, secret), (tls.certificate, certificate.public_bytes(pem))):
            with open_private(path, "w") as file:
                file.write(content.decode())
    except OSError as error:
        raise InvalidInput(f"{tls.key.parent}: the certificate cannot be stored there: {error.strerror}") from error


def _general_name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


class _Encrypted(Exception):
    def __init__(self) -> None:
        super().__init__("the key has a password; use a key without one")


def _no_password() -> str:
    raise _Encrypted
