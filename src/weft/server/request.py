"""Read requests into structs. Unknown fields are refused."""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Meta

from weft.core.findings import did_you_mean
from weft.errors import BadValue
from weft.runtime.service import RunService
from weft.runtime.tenancy import TenantService
from weft.server.identity import Identity
from weft.server.problems import RequestRefused

if TYPE_CHECKING:
    from weft.server.services import Services

T = TypeVar("T")

ROLE = "role:"
KEY_CHARS_MAX = 200
Key = Annotated[str, Meta(min_length=1, max_length=KEY_CHARS_MAX, pattern=r"^[\x21-\x7e]+$")]
"""An idempotency key."""
JSON_TYPES = ("application/json", "text/json")
FORM_TYPE = "application/x-www-form-urlencoded"
SINGLE_HEADERS = (
    b"host",
    b"authorization",
    b"origin",
    b"content-type",
    b"idempotency-key",
    b"last-event-id",
    b"weft-signature",
)


class ApiReply(msgspec.Struct, frozen=True):
    """An answer with its status and headers."""

    body: Any
    status: int = 200
    headers: dict[str, str] = {}


class ApiCall(msgspec.Struct, kw_only=True, eq=False):
    """One call of an endpoint: the request, its caller, and the services that the endpoint uses."""

    services: Services
    identity: Identity
    parameters: dict[str, str]
    query: msgspec.Struct | None = None
    body: msgspec.Struct | msgspec.Raw | None = None
    key: str | None = None
    """The caller's idempotency key."""
    scope: Mapping[str, Any] = {}
    """The ASGI scope of the request."""
    root: str = ""
    """The path under which the API is mounted."""
    headers: Mapping[str, str] = {}
    address: str = ""
    """The address that the request came from."""

    @property
    def caller(self) -> str:
        """Return the tenant or address whose limits the request counts against."""
        tenant = self.identity.tenant
        return f"@{tenant}" if tenant else self.address

    @property
    def path(self) -> str:
        """Return the path below the mount point, as it was sent."""
        return request_path(self.scope).decode("latin-1")

    def by(self, named: str = "") -> str:
        """Return who makes the request: the name in the API key or, without keys, the name that the request gives.

        If it gives none, that is the name of the open server's caller, ``local``.
        """
        return named if named and self.identity.groups is None else self.identity.subject

    @property
    def roles(self) -> list[str]:
        """The roles of the caller, as rules of the policy name them."""
        groups = self.identity.groups or ()
        return sorted(group.removeprefix(ROLE) for group in groups if group.startswith(ROLE))

    @property
    def service(self) -> RunService:
        """Return the service for the runs that this caller may see. Raises NotRunning."""
        return self._service_for(self.services.runs)

    def hosting(self) -> RunService:
        """Return the same service if a host runs in this process. Raises NotRunning."""
        return self._service_for(self.services.hosting())

    def _service_for(self, runs: RunService) -> RunService:
        tenant = self.identity.tenant
        return TenantService(runs, tenant) if tenant else runs

    def query_as(self, of: type[T]) -> T:
        """Return the query, which must have this type."""
        assert isinstance(self.query, of)
        return self.query

    def body_as(self, of: type[T]) -> T:
        """Return the body, which must have this type."""
        assert isinstance(self.body, of)
        return self.body


def read_headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers by lower-case name. If a name is repeated, the last one counts. Raises RequestRefused.

    Headers that identify the caller or the target may not be repeated, because a proxy may have used the other one.
    """
    sent = scope["headers"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in sent}
    if len(headers) < len(sent):
        names = [name for name, _ in sent]
        for name in SINGLE_HEADERS:
            if names.count(name) > 1:
                raise RequestRefused(400, "request.malformed", f"The header {name.decode()} is given twice.")
    return headers


def request_path(scope: Mapping[str, Any]) -> bytes:
    """Return the path below the mount point, as it was sent."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    root = scope.get("root_path", "").encode()
    if raw.startswith(root):
        return raw[len(root) :]
    return quote(scope["path"].removeprefix(scope.get("root_path", ""))).encode()


def check_text(text: str, what: str) -> None:
    """Refuse the NUL character, which not every store can hold. Raises BadValue."""
    if "\0" in text:
        raise BadValue(f"{what} contains a NUL character.", hint="Remove it.", code="value.not_json")


def _check_texts(value: Any) -> None:
    """Refuse a NUL character in any text or key of a JSON value. Raises BadValue."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            check_text(one, "The body")
        elif isinstance(one, dict):
            left += one.keys()
            left += one.values()
        elif isinstance(one, list):
            left += one


def read_idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the idempotency key. Raises BadValue."""
    key = headers.get("idempotency-key")
    if key is None:
        return None
    try:
        return msgspec.convert(key, Key)
    except msgspec.ValidationError:
        raise BadValue(
            "The Idempotency-Key is not valid.",
            hint=f"Use 1 to {KEY_CHARS_MAX} visible ASCII characters without spaces.",
            code="value.wrong_type",
        ) from None


def read_query(raw: bytes, of: type[msgspec.Struct] | None) -> msgspec.Struct | None:
    """Read the query into a struct. Raises BadValue."""
    if not raw:
        return of() if of is not None else None
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except (UnicodeDecodeError, ValueError):
        raise RequestRefused(400, "request.malformed", "The query cannot be read.") from None
    for name, value in pairs:
        check_text(f"{name}{value}", "The query")
    if of is None:
        if pairs:
            raise BadValue(f"This route has no parameter {pairs[0][0][:60]!r}.", code="value.wrong_type")
        return None
    query_type = _query_type(of)
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in query_type.lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise BadValue(f"The parameter {name[:60]!r} is given twice.", code="value.wrong_type")
        else:
            values[name] = value
    _check_known(values, list(query_type.names))
    try:
        for name in query_type.moments & values.keys():
            values[name] = msgspec.convert(values[name], datetime)
        read = msgspec.convert(values, query_type.type, strict=False)
    except msgspec.ValidationError as error:
        raise BadValue(f"The query is not valid: {_text_of(error)}.", code="value.wrong_type") from None
    return of(**{query_type.names[name]: getattr(read, name) for name in values})


def _check_known(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse parameters that a query does not have. Raises BadValue."""
    unknown = [name[:60] for name in given if name not in known]
    if unknown:
        hint = f"{did_you_mean(unknown[0], known)} The query can have: {', '.join(known)}.".lstrip()
        names = ", ".join(repr(name) for name in unknown)
        raise BadValue(f"The query is not valid: unknown field {names}.", hint=hint, code="value.wrong_type")


class _QueryType(msgspec.Struct, frozen=True):
    """The type into which the strings of a query are converted.

    Nothing in it may be null: an optional parameter is left out, and "null" is a string like any other.
    """

    type: type[msgspec.Struct]
    lists: frozenset[str]
    """Parameters that may be repeated."""
    moments: frozenset[str]
    """Parameters that are times, which may not be numbers."""
    names: dict[str, str]
    """The fields of the query by the names of their parameters."""


@lru_cache
def _query_type(of: type[msgspec.Struct]) -> _QueryType:
    fields: list[Any] = []
    lists, moments = set(), set()
    for field in msgspec.structs.fields(of):
        union = typing.get_origin(field.type) in (types.UnionType, typing.Union)
        parts = [
            part for part in (typing.get_args(field.type) if union else [field.type]) if part is not types.NoneType
        ]
        bare = [typing.get_args(part)[0] if typing.get_origin(part) is Annotated else part for part in parts]
        if any(typing.get_origin(part) is list for part in bare):
            lists.add(field.encode_name)
        if datetime in bare:
            moments.add(field.encode_name)
        known = functools.reduce(operator.or_, [*parts, msgspec.UnsetType])
        fields.append((field.encode_name, known, msgspec.UNSET))
    query_type = msgspec.defstruct(of.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    names = {field.encode_name: field.name for field in msgspec.structs.fields(of)}
    return _QueryType(query_type, frozenset(lists), frozenset(moments), names)


@lru_cache
def _decoder(of: type[msgspec.Struct]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(of).decode


def read_json(raw: bytes, of: type[msgspec.Struct], headers: Mapping[str, str]) -> msgspec.Struct:
    """Read a JSON body into a struct. An empty body counts as an empty object. Raises RequestRefused, BadValue."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and media in ("", *JSON_TYPES):
        raw = b"{}"
    elif media not in JSON_TYPES:
        raise RequestRefused(415, "request.wrong_type", "The body must be JSON.", hint="Content-Type: application/json")
    try:
        read: msgspec.Struct = _decoder(of)(raw)
        if b"\\u0000" in raw:
            _check_texts(msgspec.json.decode(raw))
        return read
    except msgspec.ValidationError as error:
        raise BadValue(f"The body is not valid: {_text_of(error)}.", code="value.wrong_type") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(400, "request.malformed", f"The body is not JSON: {_text_of(error)}.") from None


def read_form(raw: bytes, of: type[msgspec.Struct], headers: Mapping[str, str]) -> msgspec.Struct:
    """Read an HTML form into a struct. ``a.b=1`` goes into the mapping ``a``. Raises RequestRefused, BadValue."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and media != FORM_TYPE:
        raise RequestRefused(415, "request.wrong_type", "The body must be a form.", hint=f"Content-Type: {FORM_TYPE}")
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=200)
    except (UnicodeDecodeError, ValueError):
        raise RequestRefused(400, "request.malformed", "The form cannot be read.") from None
    for name, value in pairs:
        check_text(f"{name}{value}", "The form")
    fields: dict[str, Any] = {}
    for name, value in pairs:
        outer, dot, inner = name.partition(".")
        place = fields.setdefault(outer, {}) if dot else fields
        key = inner if dot else outer
        if not isinstance(place, dict) or key in place:
            raise BadValue(f"The field {name[:60]!r} is given twice.", code="value.wrong_type")
        place[key] = value
    try:
        return msgspec.convert(fields, of)
    except msgspec.ValidationError as error:
        raise BadValue(f"The form is not valid: {_text_of(error)}.", code="value.wrong_type") from None


def _text_of(error: Exception) -> str:
    return str(error)[:300].rstrip(".").replace("\n", " ")
