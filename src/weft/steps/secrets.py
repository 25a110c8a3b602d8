"""Secrets: stored as references, revealed inside steps, and redacted from everything that a step writes.

    weft.Secret("env:STRIPE_KEY")       the environment of the process that performs the step
    weft.Secret("file:/run/secrets/k")  a file there; leading and trailing whitespace is removed

A process remembers the values it has revealed, and replaces them in results, failures, output streams and log lines
before they are written. Only whole values are recognised, not parts or other encodings.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from weft.core.secrets import Reference
from weft.errors import BadValue, NoContext, NotFound
from weft.steps.task_permissions import check_permitted

VALUE_CHARS_MIN = 6
"""The minimum length of a secret. A shorter value could occur in other texts by chance, or be guessed."""
KNOWN_MAX = 1_000
LOGGERS = ("weft", "weft.api")

REVEALED: dict[str, str] = {}
"""The revealed values and their replacements, longest first, so that a value is replaced before any part of it."""
_forbidden: list[Callable[[], bool]] = []
_encode = msgspec.json.Encoder().encode


class Secret(Reference, frozen=True, forbid_unknown_fields=True):
    """A reference to a secret. The reference is stored; the value is revealed only in steps and removed elsewhere."""

    def __post_init__(self) -> None:
        kind, _, place = self.ref.partition(":")
        if kind not in _PROVIDERS or not place or not self.ref.isprintable():
            raise ValueError(f"{self.ref[:60]!r} is not a reference to a secret: write env:NAME or file:/path")

    def __repr__(self) -> str:
        return f"Secret({self.ref!r})"

    def reveal(self) -> str:
        """Return the value of the secret. This works only in a step, because the values of a workflow are recorded.

        Raises NotFound, NoContext, BadValue, and NotAllowed if the policy does not permit it.
        """
        if any(is_forbidden() for is_forbidden in _forbidden):
            raise NoContext(
                f"{self!r} cannot be revealed in a workflow, where everything is recorded.",
                hint="Pass the Secret to a step and reveal it there.",
            )
        check_permitted("secret", self.ref)
        kind, _, place = self.ref.partition(":")
        value = _PROVIDERS[kind](place)
        if len(value) < VALUE_CHARS_MIN:
            raise BadValue(
                f"{self!r} has fewer than {VALUE_CHARS_MIN} characters, so it could not be kept secret.",
                code="value.secret",
            )
        _remember(value, self.ref)
        return value


def _from_environment(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise NotFound(f"Secret('env:{name}') cannot be revealed: this process has no environment variable {name}.")
    return value


def _from_file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"Secret('file:{path}') cannot be revealed: {type(error).__name__}.") from None


_PROVIDERS: dict[str, Callable[[str], str]] = {"env": _from_environment, "file": _from_file}


def forbid_where(condition: Callable[[], bool]) -> None:
    """Forbid revealing secrets where the condition is true."""
    _forbidden.append(condition)


# --- redaction ---------------------------------------------------------------------------------------------------


def _remember(value: str, ref: str) -> None:
    if value in REVEALED:
        return
    if not REVEALED:
        for name in LOGGERS:
            logging.getLogger(name).addFilter(strike_record)
    # The value itself, and the form in which Python quotes it in an exception.
    REVEALED.update(dict.fromkeys((value, repr(value)[1:-1]), f"[secret {ref}]"))
    kept = sorted(list(REVEALED.items())[-KNOWN_MAX:], key=lambda item: -len(item[0]))
    REVEALED.clear()
    REVEALED.update(kept)


def known_secrets() -> dict[str, str]:
    """Return the values that this process has revealed, each with its place. The result contains secrets."""
    return {value: mark.removeprefix("[secret ").removesuffix("]") for value, mark in REVEALED.items()}


def value_of_secret(ref: str) -> str | None:
    """Return the value at a place, to search for it; None if it cannot be read here or is too short to be one."""
    kind, _, place = ref.partition(":")
    try:
        value = _PROVIDERS[kind](place) if kind in _PROVIDERS else ""
    except NotFound:
        return None
    return value if len(value) >= VALUE_CHARS_MIN else None


def replace_secrets(text: str) -> str:
    """Replace the secrets that this process has revealed in a text."""
    for value, mark in REVEALED.items():
        if value in text:
            text = text.replace(value, mark)
    return text


def strike_json(raw: bytes) -> bytes:
    """Replace the secrets that this process has revealed in JSON, even if their characters are escaped."""
    for value, mark in REVEALED.items():
        written = _encode(value)[1:-1]
        if written in raw:
            raw = raw.replace(written, _encode(mark)[1:-1])
    return raw


def strike_value(value: Any) -> Any:
    """Replace the secrets that this process has revealed in a JSON value."""
    return msgspec.json.decode(strike_json(_encode(value))) if REVEALED else value


def strike_record(record: logging.LogRecord) -> bool:
    """Replace secrets in a log record and let it pass. A filter for loggers."""
    text = record.getMessage()
    clean = replace_secrets(text)
    if clean != text:
        record.msg, record.args = clean, None
    if record.exc_info and record.exc_info[1] is not None and REVEALED:
        record.exc_text = replace_secrets(logging.Formatter().formatException(record.exc_info))
    return True
