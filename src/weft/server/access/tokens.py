"""Check bearer tokens of an identity provider: the signature, the audience and the expiry.

The provider's keys are fetched when needed, and cached. A token with an unknown key id causes another fetch, at most
every few seconds, so that a provider can rotate its keys. These claims are used:

    scope or scp   what the caller may do: read, start, decide, operate, work, admin
    roles, groups  the groups for which the caller may answer questions: role:…, team:…
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from weft.errors import UsageError, WeftError
from weft.runtime.tenancy import check_tenant
from weft.server.access.keys import check_key_name
from weft.server.identity import AccessScope, Identity
from weft.server.problems import unknown_caller
from weft.server.settings import JwtSettings
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest

log = logging.getLogger("weft.api")

# Only public-key algorithms, because anybody could sign with a shared secret among the published keys.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
CACHED_KEYS_SECONDS = 600.0
REFETCH_SECONDS = 10.0
LEEWAY_SECONDS = 30
TOKEN_CHARS_MAX = 8_192
FETCH_MS = 5_000
JWKS_BYTES_MAX = 1024 * 1024


class Tokens:
    """Checks the tokens of one identity provider."""

    def __init__(
        self, settings: JwtSettings, *, monotonic: Callable[[], float], client: HttpClient | None = None
    ) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._client = client or HttpClient()
        self._keys: dict[str, Any] = {}
        self._fetched_at = -CACHED_KEYS_SECONDS
        self._tried_at = -REFETCH_SECONDS
        self._fetching = asyncio.Lock()

    async def identity(self, token: str) -> Identity:
        """Return the caller that a token identifies. Raises RequestRefused."""
        return self.identity_of(await self.claims(token, self._settings.audience))

    async def claims(self, token: str, audience: str) -> dict[str, Any]:
        """Return the claims of a valid token for this audience. Raises RequestRefused."""
        import jwt  # noqa: PLC0415 - imports cryptography, which only a server with a provider needs

        if len(token) > TOKEN_CHARS_MAX:
            raise unknown_caller("The token is too long.")
        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid"))
            found: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self._settings.issuer,
                audience=audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise unknown_caller(f"The token is not valid: {str(error)[:200]}.") from None
        return found

    def identity_of(self, claims: dict[str, Any]) -> Identity:
        """Return the caller that the claims of a token describe. Raises RequestRefused."""
        try:
            return self._identity_of(claims)
        except (UsageError, msgspec.ValidationError) as error:
            raise unknown_caller(f"The claims of the token cannot be used: {str(error)[:200]}") from None

    def _identity_of(self, claims: dict[str, Any]) -> Identity:
        settings = self._settings
        if settings.name not in claims:
            raise unknown_caller(f'The token has no claim "{settings.name}", which names the caller.')
        name = check_key_name(_token_text(claims[settings.name]))
        tenant = ""
        if settings.tenant:
            tenant = check_tenant(_token_text(claims.get(settings.tenant, "")))
            if not tenant:
                raise unknown_caller(f'The token has no claim "{settings.tenant}", which names the tenant.')
        words = _read_texts(claims.get("scope", claims.get("scp", [])))
        scopes = frozenset(AccessScope(word) for word in words if word in list(AccessScope))
        groups = [f"role:{role}" for role in _read_texts(claims.get("roles", []))]
        groups += [f"team:{team}" for team in _read_texts(claims.get("groups", []))]
        return Identity(name, scopes, tenant, frozenset(groups))

    async def _key(self, kid: Any) -> Any:
        """Return the key with this id. Raises RequestRefused."""
        if not self._is_known(kid) or self._monotonic() - self._fetched_at > CACHED_KEYS_SECONDS:
            async with self._fetching:
                if self._may_fetch(kid):
                    await self._fetch()
        if self._is_known(kid):
            return next(iter(self._keys.values())) if kid is None else self._keys[kid]
        raise unknown_caller("The token was signed by a key that its provider does not publish.")

    def _is_known(self, kid: Any) -> bool:
        return kid in self._keys if isinstance(kid, str) else kid is None and len(self._keys) == 1

    def _may_fetch(self, kid: Any) -> bool:
        now = self._monotonic()
        stale = not self._is_known(kid) or now - self._fetched_at > CACHED_KEYS_SECONDS
        return stale and now - self._tried_at >= REFETCH_SECONDS

    async def _fetch(self) -> None:
        from jwt import PyJWK, PyJWKError  # noqa: PLC0415 - as in ``identity``

        self._tried_at = self._monotonic()
        try:
            answer = await self._client.send(HttpRequest(method="GET", url=self._settings.jwks, timeout_ms=FETCH_MS))
            if not answer.ok or len(answer.body) > JWKS_BYTES_MAX:
                raise UsageError(f"{answer.request.shown()} answered {answer.status}.")
            key_set = msgspec.json.decode(answer.body, type=_KeySet)
        except (WeftError, msgspec.DecodeError) as error:
            # Known keys stay valid. Tokens with unknown keys are refused.
            log.warning("weft: could not fetch the keys of the identity provider: %s", error)
            return
        keys: dict[str, Any] = {}
        for one in key_set.keys:
            try:
                keys[str(one.get("kid", ""))] = PyJWK(one)
            except PyJWKError as error:
                log.info("weft: ignoring a key of the identity provider: %s", error)
        self._keys = keys
        self._fetched_at = self._tried_at

    async def close(self) -> None:
        """Close the connection to the provider."""
        await self._client.close()


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def _token_text(value: Any) -> str:
    return msgspec.convert(value, str)


def _read_texts(value: Any) -> list[str]:
    """Read a list of strings, or one string of words."""
    return value.split() if isinstance(value, str) else msgspec.convert(value, list[str])
