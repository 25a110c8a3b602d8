"""Read the settings of the server from environment variables: identity provider, public URL, receivers of events."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from weft.core.run.hook_events import HOOK_KINDS, QUESTION_KINDS
from weft.errors import UsageError
from weft.runtime.hooks import read_kinds, read_where
from weft.settings import variable
from weft.tokens import SECRET_BYTES_MIN

JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS = "WEFT_JWT_ISSUER", "WEFT_JWT_AUDIENCE", "WEFT_JWT_JWKS"
JWT_NAME, JWT_TENANT = "WEFT_JWT_NAME", "WEFT_JWT_TENANT"
OIDC_CLIENT, OIDC_SECRET, OIDC_SCOPE = "WEFT_OIDC_CLIENT_ID", "WEFT_OIDC_CLIENT_SECRET", "WEFT_OIDC_SCOPE"
PUBLIC_URL = "WEFT_PUBLIC_URL"
EVENTS_URL, EVENTS_KINDS, EVENTS_WHERE = "WEFT_EVENTS_URL", "WEFT_EVENTS_KINDS", "WEFT_EVENTS_WHERE"
EVENTS_SECRET = "WEFT_EVENTS_SECRET"  # noqa: S105 - the name of a variable
APPROVALS_URL = "WEFT_APPROVALS_URL"
APPROVALS_SECRET = "WEFT_APPROVALS_SECRET"  # noqa: S105 - the name of a variable
_SCHEMES = ("https://", "http://")


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The identity provider whose tokens are accepted, and what their claims mean."""

    issuer: str
    audience: str
    jwks: str
    """The URL of its public keys."""
    name: str = "sub"
    """The claim with the caller's name."""
    tenant: str = ""
    """The claim with the tenant, which every token must then have. Empty if tokens have no tenant."""


def read_jwt_settings() -> JwtSettings | None:
    """Return the settings for tokens, or None if no tokens are accepted. Raises UsageError if some are missing."""
    variables = {name: variable(name) for name in (JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS)}
    if not any(variables.values()):
        return None
    missing = [name for name, value in variables.items() if not value]
    if missing:
        raise UsageError(
            f"To accept tokens of an identity provider, also set {', '.join(missing)}.",
            hint=f"Set {JWT_ISSUER}, {JWT_AUDIENCE} and {JWT_JWKS} (the URL of its keys), or none of them.",
        )
    if not variables[JWT_JWKS].startswith(_SCHEMES):
        raise UsageError(
            f"{JWT_JWKS} is {variables[JWT_JWKS][:100]!r}, which is not a URL.", hint="https://…/jwks.json"
        )
    return JwtSettings(
        issuer=variables[JWT_ISSUER],
        audience=variables[JWT_AUDIENCE],
        jwks=variables[JWT_JWKS],
        name=variable(JWT_NAME),
        tenant=variable(JWT_TENANT),
    )


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How people sign in to the web UI at the identity provider whose tokens are accepted."""

    issuer: str
    audience: str
    client_id: str
    client_secret: str = ""
    """Empty for a public client, which PKCE is enough for."""
    scope: str = "openid profile"


def read_oidc_settings(tokens: JwtSettings | None) -> OidcSettings | None:
    """Return the settings for signing in, or None if nobody can. Raises UsageError if some are missing."""
    client = variable(OIDC_CLIENT)
    if not client:
        return None
    if tokens is None:
        raise UsageError(
            f"{OIDC_CLIENT} needs the identity provider.", hint=f"Set {JWT_ISSUER}, {JWT_AUDIENCE} and {JWT_JWKS}."
        )
    scope = variable(OIDC_SCOPE)
    if "openid" not in scope.split():
        raise UsageError(f"{OIDC_SCOPE} is {scope[:100]!r}, without openid.", hint='"openid profile read start"')
    return OidcSettings(
        issuer=tokens.issuer,
        audience=tokens.audience,
        client_id=client,
        client_secret=variable(OIDC_SECRET),
        scope=scope,
    )


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver of events, the secret that signs them, and which events it gets."""

    name: str
    url: str
    secret: str
    kinds: frozenset[str]
    where: str | None = None
    """A filter in CEL, as hooks have them."""
    public: str = ""
    """The URL that links to questions begin with. Without it, there are no links."""


def public_url() -> str:
    """Return the URL under which people reach this server; empty if it is not set. Raises UsageError."""
    url = variable(PUBLIC_URL).rstrip("/")
    if url and not url.startswith(_SCHEMES):
        raise UsageError(f"{PUBLIC_URL} is {url[:100]!r}, which is not a URL.", hint="https://weft.example.com")
    return url


def read_webhook_settings() -> list[WebhookSettings]:
    """Return the receivers of events; empty if nobody is told. Raises UsageError, BadHook."""
    return [found for found in (_read_events(), _read_approvals()) if found is not None]


def _read_events() -> WebhookSettings | None:
    kinds, where = variable(EVENTS_KINDS), variable(EVENTS_WHERE)
    url, secret = variable(EVENTS_URL), variable(EVENTS_SECRET)
    if not (url or secret or kinds or where):
        return None
    _check_receiver(EVENTS_URL, url, EVENTS_SECRET, secret)
    named = tuple(kind.strip() for kind in kinds.split(",") if kind.strip())
    read_where(where or None, EVENTS_WHERE)
    return WebhookSettings(
        name="weft.events",
        url=url,
        secret=secret,
        kinds=read_kinds(named or HOOK_KINDS, EVENTS_KINDS),
        where=where or None,
        public=public_url(),
    )


def _read_approvals() -> WebhookSettings | None:
    """Return the receiver of questions: the events that are questions, at a URL of their own."""
    url, secret = variable(APPROVALS_URL), variable(APPROVALS_SECRET)
    if not url and not secret:
        return None
    _check_receiver(APPROVALS_URL, url, APPROVALS_SECRET, secret)
    public = public_url()
    if not public:
        raise UsageError(f"Notifications about questions need {PUBLIC_URL}: it is where their links lead.")
    return WebhookSettings(name="weft.approvals", url=url, secret=secret, kinds=QUESTION_KINDS, public=public)


def _check_receiver(url_name: str, url: str, secret_name: str, secret: str) -> None:
    """Check the URL and the secret of a receiver. Raises UsageError."""
    if not url.startswith(_SCHEMES) or not _has_host(url):
        what = "is not a URL" if url else "is not set"  # the URL of a receiver may be its secret
        raise UsageError(f"{url_name} {what}.", hint="https://chat.example.com/weft")
    if "@" in urlsplit(url).netloc:
        raise UsageError(
            f"{url_name} contains a user name or password, which cannot be sent.",
            hint="The receiver knows the sender by the signature of each request.",
        )
    if len(secret.encode()) < SECRET_BYTES_MIN:
        raise UsageError(
            f"{url_name} needs {secret_name}, a secret of at least {SECRET_BYTES_MIN} bytes.",
            hint='Create a secret: python -c "import secrets; print(secrets.token_urlsafe(32))"',
        )


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
