"""Leave secrets and chosen values out of a bundle.

A text that contains a secret is replaced as a whole by ``{"$redacted": ...}``. Where an event must have a text there,
only the secret in it is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.secrets import KEY
from weft.errors import UsageError, WeftError
from weft.ports.store import StoredEvent
from weft.runtime.bundles.format import REDACTED, Redaction, stream_file
from weft.steps.secrets import known_secrets, value_of_secret

ASKED = "asked for"
_SECRET_REF = re.compile(rb'\{"\$secret":"((?:[^"\\]|\\.)*)"\}')
_encode = msgspec.json.Encoder().encode

Found = Callable[[str, str], None]
"""Takes the pointer of a value that was left out, and why."""


def parse_pointer(text: str) -> list[str]:
    """Read a JSON pointer (RFC 6901). Raises UsageError."""
    if not text.startswith("/"):
        raise UsageError(f"{text[:60]!r} is not a JSON pointer.", hint="Write for example /input/card/number.")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def secrets_in(texts: Sequence[bytes]) -> dict[str, str]:
    """Return the secrets that must not be in a bundle, each with its place.

    These are the ones that this process has revealed, and those to which the logs refer, if they can be read here.
    """
    found = dict(known_secrets())
    refs = {match.group(1) for text in texts for match in _SECRET_REF.finditer(text)}
    for ref in sorted(msgspec.json.decode(b'"%b"' % raw, type=str) for raw in refs):
        value = value_of_secret(ref)
        if value is not None:
            found.setdefault(value, ref)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


class Redactor:
    """Replaces values in events and blobs, and lists what was replaced."""

    def __init__(self, secrets: Mapping[str, str], pointers: Sequence[str]) -> None:
        self._secrets = secrets
        self._pointers = [(text, parse_pointer(text)) for text in pointers]
        self._needles = [(_encode(value)[1:-1], value.encode(), ref) for value, ref in secrets.items()]
        self.redacted: list[Redaction] = []

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to look for."""
        return not self._secrets and not self._pointers

    def value(self, uid: str, value: Any) -> Any:
        """Return a JSON value of a run, with secrets replaced."""
        found: list[tuple[str, str]] = []
        clean = self._replace_secrets(value, "/attributes", lambda pointer, why: found.append((pointer, why)))
        self.redacted += [Redaction(run=uid, seq=0, pointer=pointer, why=why) for pointer, why in found]
        return clean

    def event(self, uid: str, one: StoredEvent) -> StoredEvent:
        """Return an event without secrets and without what the pointers name."""
        if not self._pointers and not self.mentions(one.body):
            return one
        found: list[tuple[str, str]] = []
        body = msgspec.json.decode(one.body)
        changed = self._replace_secrets(body, "", lambda pointer, why: found.append((pointer, why)))
        for text, parts in self._pointers:
            if _cut_value(changed, parts):
                found.append((text, ASKED))
        if not found:
            return one
        self.redacted += [Redaction(run=uid, seq=one.seq, pointer=pointer, why=why) for pointer, why in found]
        raw = _encode(changed)
        return StoredEvent(one.seq, one.at, raw if _is_event(raw) else self._in_texts(one.body))

    def output(self, uid: str, stream: str, data: bytes) -> bytes:
        """Return an output stream without secrets."""
        if not self.mentions(data):
            return data
        self.redacted.append(Redaction(run="", seq=0, pointer=stream_file(uid, stream), why="it contained a secret"))
        return self._in_texts(data)

    def blob(self, uid: str, seq: int, data: bytes) -> bytes:
        """Return a blob without secrets."""
        if not self.mentions(data):
            return data
        found: list[tuple[str, str]] = []
        try:
            changed = self._replace_secrets(
                msgspec.json.decode(data), "", lambda pointer, why: found.append((pointer, why))
            )
        except msgspec.DecodeError:
            self.redacted.append(Redaction(run=uid, seq=seq, pointer="", why="a secret in data that is not JSON"))
            for _, value, ref in self._needles:
                data = data.replace(value, f"[secret {ref}]".encode())
            return data
        self.redacted += [Redaction(run=uid, seq=seq, pointer=pointer, why=why) for pointer, why in found]
        return _encode(changed)

    def pointed(self, body: bytes) -> list[tuple[str, list[str], str]]:
        """Return the pointers into blobs of an event, each with its path in the blob and the digest of the blob."""
        found = []
        data = msgspec.json.decode(body) if self._pointers else None
        for text, parts in self._pointers:
            place = data
            for depth, part in enumerate(parts):
                if isinstance(place, dict) and place.get("$weft") == "blob":
                    found.append((text, parts[depth:], str(place.get("at", "")).removeprefix("cas://sha256:")))
                    break
                place = _step(place, part)
        return found

    def cut_blob(self, data: bytes, parts: Sequence[str]) -> bytes | None:
        """Return a blob without the value at a path; None if it has no such value."""
        value = msgspec.json.decode(data)
        return _encode(value) if _cut_value(value, parts) else None

    def mentions(self, data: bytes) -> bool:
        """Return whether a text contains a secret."""
        return any(written in data or value in data for written, value, _ in self._needles)

    def _replace_secrets(self, value: Any, pointer: str, found: Found) -> Any:
        """Return a JSON value in which every text with a secret is replaced."""
        if isinstance(value, dict):
            if KEY in value:
                return value  # a reference, which names the place of a secret
            return {
                self._in_text(key): self._replace_secrets(part, f"{pointer}/{_escaped(key)}", found)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self._replace_secrets(part, f"{pointer}/{index}", found) for index, part in enumerate(value)]
        if isinstance(value, str):
            for secret, ref in self._secrets.items():
                if secret in value:
                    found(pointer, ref)
                    return {REDACTED: ref}
        return value

    def _in_text(self, text: str) -> str:
        for secret, ref in self._secrets.items():
            text = text.replace(secret, f"[secret {ref}]")
        return text

    def _in_texts(self, body: bytes) -> bytes:
        for written, _, ref in self._needles:
            body = body.replace(written, _encode(f"[secret {ref}]")[1:-1])
        return body


def _is_event(raw: bytes) -> bool:
    try:
        e.decode(raw)
    except WeftError:
        return False
    return True


def _step(place: Any, part: str) -> Any:
    if isinstance(place, dict):
        return place.get(part)
    if isinstance(place, list) and part.isdecimal() and int(part) < len(place):
        return place[int(part)]
    return None


def _cut_value(value: Any, parts: Sequence[str]) -> bool:
    """Replace the value that a pointer names. Returns whether there is one."""
    for part in parts[:-1]:
        value = _step(value, part)
    last = parts[-1]
    if isinstance(value, dict) and last in value:
        value[last] = {REDACTED: ASKED}
        return True
    if isinstance(value, list) and last.isdecimal() and int(last) < len(value):
        value[int(last)] = {REDACTED: ASKED}
        return True
    return False


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
