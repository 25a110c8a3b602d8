"""Limits that users declare on steps and workflows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.authoring.policies import bad_policy
from weft.core.durations import parse_rate
from weft.core.findings import did_you_mean
from weft.errors import BadDuration, BadValue
from weft.ports.tasks import KeyLimit
from weft.runtime.key_limits import DeclaredLimit
from weft.steps.signature import Signature

COUNT_MAX = 2**31 - 1
EXAMPLE = 'weft.Limit(concurrency=5, rate="20/s", key="customer_id")'


@dataclass(frozen=True, slots=True)
class Limit:
    """How many tasks of a step, or runs of a workflow, may be under way at once or begin in a time, over all hosts.

    The limit holds for each key separately. ``key`` is a CEL expression over the input, or a function that gets the
    input as a mapping. It gives a text or an integer. Without a key, there is one limit for all.
    """

    concurrency: int | None = None
    """How many may be under way at the same time."""
    rate: str | None = None
    """How many may begin in any period: ``"20/s"``, ``"100/1m"``, ``"5/1h30m"``."""
    key: str | Callable[[Mapping[str, Any]], object] | None = None


def check_declared_limit(what: str, limit: object, signature: Signature) -> DeclaredLimit | None:
    """Check the limit of a step or workflow. Raises BadValue."""
    if limit is None:
        return None
    if not isinstance(limit, Limit):
        raise bad_policy("limit", limit, "a weft.Limit", f"limit={EXAMPLE}")
    if limit.concurrency is None and limit.rate is None:
        raise BadValue(
            f"The limit of {what} limits nothing.",
            hint=f"Give it concurrency=, rate= or both: {EXAMPLE}.",
            code="value.bad_policy",
        )
    count: object = limit.concurrency
    if count is not None and not (isinstance(count, int) and not isinstance(count, bool) and 0 < count <= COUNT_MAX):
        raise bad_policy(
            "concurrency", count, "an integer of at least 1", "concurrency=5, or leave it out for no limit"
        )
    rate, per_ms = _read_rate(limit.rate) if limit.rate is not None else (None, 1_000)
    _check_key(what, limit.key, [parameter.name for parameter in signature.parameters])
    defaults = signature.defaults(None)
    declared = KeyLimit(
        concurrency=limit.concurrency,
        rate=rate,
        per_ms=per_ms,
        key=limit.key if isinstance(limit.key, str) else "",
        by_code=callable(limit.key),
        defaults=msgspec.json.decode(defaults) if defaults and limit.key is not None else {},
    )
    return DeclaredLimit(declared, limit.key if callable(limit.key) else None)


def _read_rate(rate: object) -> tuple[int, int]:
    try:
        count, per_ms = parse_rate(rate)
    except BadDuration:
        count = per_ms = 0
    if not 0 < count <= COUNT_MAX or per_ms <= 0:
        raise bad_policy("rate", rate, "a number of starts in a period", 'rate="20/s" or rate="100/1m"')
    return count, per_ms


def _check_key(what: str, key: object, parameters: list[str]) -> None:
    if key is None or (callable(key) and not inspect.iscoroutinefunction(key)):
        return
    if not isinstance(key, str) or not key:
        raise bad_policy("key", key, "a CEL expression or a plain function", 'key="customer_id"')
    from weft.conditions import BadExpression, compile_expression  # noqa: PLC0415 - slow to import, rarely needed

    try:
        names = compile_expression(key).names
    except BadExpression as error:
        raise BadValue(
            f"key={key!r} in the limit of {what} is not a CEL expression: {error.message}",
            hint="Write the name of a parameter, a field of one (order.customer), or a function.",
            code="value.bad_policy",
        ) from error
    unknown = sorted(names - set(parameters))
    if unknown:
        near = did_you_mean(unknown[0], parameters)
        reads = f"reads {unknown[0]}, which is not a parameter.{f' {near}' if near else ''}"
        raise BadValue(
            f"key={key!r} in the limit of {what} {reads}",
            hint=f"Its parameters are {', '.join(parameters)}." if parameters else "It has no parameters.",
            code="value.bad_policy",
        )
