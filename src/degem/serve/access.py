"""Who may do what: bearer tokens with scopes."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path

from degem.errors import DegemError
from degem.files import read_regular

SCOPES = frozenset({"read", "write", "admin"})
SHORTEST = 16  # characters of a token
VARIABLE = "DEGEM_TOKENS"
MAX_BYTES = 1 << 20


class Access:
    """Which scopes a token has; without any token, everyone who can reach the server has all.

    Arguments:
        lines: ``SCOPE[,SCOPE…] TOKEN`` each, with the scopes read, write and admin.

    Example:
        >>> access = Access(["read,write 0123456789abcdef"])
        >>> sorted(access.scopes_of("0123456789abcdef")), sorted(access.scopes_of("another"))
        (['read', 'write'], [])
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._known: list[tuple[bytes, frozenset[str]]] = []
        for place, line in enumerate((line.strip() for line in lines), 1):
            if line and not line.startswith("#"):
                scopes, _, token = line.partition(" ")
                granted, token = frozenset(scopes.split(",")), token.strip()
                if not granted <= SCOPES or len(token) < SHORTEST or " " in token:
                    raise DegemError(
                        f"token {place} cannot be read: write SCOPE[,SCOPE] TOKEN a line, with scopes of read, write "
                        f"and admin, and tokens of at least {SHORTEST} characters"
                    )
                self._known.append((_digest(token), granted))

    @classmethod
    def given(cls, path: Path | None) -> Access:
        """The tokens of a file, or those of the environment variable ``DEGEM_TOKENS``."""
        if path is None:
            return cls(os.environ.get(VARIABLE, "").splitlines())
        try:
            return cls(read_regular(path, MAX_BYTES).decode().splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise DegemError(f"--tokens {path} cannot be read: {error}") from None

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a token."""
        return not self._known

    def scopes_of(self, token: str | None) -> frozenset[str]:
        """The scopes of a token; how long it takes does not tell how near a guess is."""
        if self.is_open:
            return SCOPES
        given, granted = _digest(token or ""), frozenset[str]()
        for digest, scopes in self._known:
            if hmac.compare_digest(digest, given):
                granted = scopes
        return granted


def check_host(host: str, access: Access) -> None:
    """Refuse to listen where others can connect while nobody needs a token.

    Example:
        >>> check_host("0.0.0.0", Access([]))
        Traceback (most recent call last):
            ...
        degem.errors.DegemError: --host 0.0.0.0 lets other machines connect: give tokens (--tokens or DEGEM_TOKENS), or
        keep to 127.0.0.1
    """
    if access.is_open and not is_loopback(host):
        raise DegemError(
            f"--host {host} lets other machines connect: give tokens (--tokens or {VARIABLE}), or keep to 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
