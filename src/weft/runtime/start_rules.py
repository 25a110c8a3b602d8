"""Work out the key of a start, for workflows that have a rule about starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core import values
from weft.core.start_rules import StartRule, decode_rule, encode_rule
from weft.core.unstorable import is_storable_text, to_encodable
from weft.errors import BadValue, LimitExceeded, UsageError, WeftError
from weft.ports.starts import RuledStarts
from weft.runtime.typed_words import parse_word
from weft.steps.failures import error_phrase

KEY_CHARS_MAX = 200
NOT_STARTED = "Nothing was started."
INPUT = "input"
ITEM = "item"
"""The names of the whole input, and of one item of a batch, in a key."""


class StartKey(msgspec.Struct, frozen=True):
    """The key of a start, and how many inputs it brings to a batch."""

    text: str
    inputs: int = 0


class DeclaredRule(msgspec.Struct, frozen=True):
    """A rule about starts as this process knows it: from the code of the workflow, or from the store."""

    rule: StartRule
    call: Callable[[bytes], Sequence[Any]] | None = None
    """Returns the keys of an input, one for each item of a batch, if the key is a function."""
    stored: bytes | None = None
    """The rule as it was read from the store."""


def stored_rule(body: bytes) -> DeclaredRule:
    """Return a rule that was read from the store."""
    return DeclaredRule(decode_rule(body), stored=body)


async def publish_rules(starts: RuledStarts, names: Sequence[str], rules: Mapping[str, StartRule]) -> None:
    """Store the rules of these workflows, and remove the rules of those that have none now."""
    known = await starts.rules()
    wanted = {name: encode_rule(rules[name]) if name in rules else None for name in names}
    changes = {name: body for name, body in wanted.items() if body != known.get(name)}
    if changes:
        await starts.set_rules(changes)


def start_key(declared: DeclaredRule, workflow: str, given: bytes, words: Sequence[str] = ()) -> StartKey:
    """Work out the key of a start. ``words`` are arguments that are text because nobody here knows their types.

    Raises:
        BadValue: the key fails on this input, or the input is not one that the batch takes.
        UsageError: the key is a function, and the code of the workflow is not here.
        LimitExceeded: the input is too big for one of so many.
    """
    rule = declared.rule
    named = {name: parse_word(each) if name in words else each for name, each in values.decode(given).items()}
    items = _batch_items(rule, workflow, named, len(given)) if rule.kind == "batch" else None
    found = [_key_text(rule, workflow, value) for value in _evaluate_keys(declared, workflow, given, named, items)]
    if any(key != found[0] for key in found):
        raise BadValue(
            f"{workflow} was not started: its inputs have different keys ({found[0]!r} and others).",
            hint=f"Start it once for each key. {NOT_STARTED}",
            code="start.bad_key",
        )
    return StartKey(found[0], len(items) if items is not None else 0)


def _batch_items(rule: StartRule, workflow: str, named: Mapping[str, Any], size: int) -> list[Any]:
    """Return the items that a start brings to a batch. Raises BadValue, LimitExceeded."""
    items = named.get(rule.items)
    if not isinstance(items, list) or not 1 <= len(items) <= rule.size:
        raise BadValue(
            f"{workflow} was not started: {rule.items} must be a list of 1 to {rule.size} items, "
            f"not {values.preview_text(items)}.",
            hint=f"Each start brings items, and a run gets up to {rule.size} of them. {NOT_STARTED}",
            code="start.bad_batch",
        )
    allowed = values.VALUE_BYTES_MAX // rule.size * len(items)
    if size > allowed:
        raise LimitExceeded(
            f"{workflow} was not started: its input has {size:,} bytes; with {rule.size} items in a run, "
            f"{len(items)} may have {allowed:,}.",
            hint="Make the batch smaller, or store large values elsewhere and pass where they are.",
            code="start.batch_too_big",
        )
    return items


def _evaluate_keys(
    declared: DeclaredRule, workflow: str, given: bytes, named: Mapping[str, Any], items: Sequence[Any] | None
) -> Sequence[Any]:
    rule = declared.rule
    if declared.call is not None:
        return _call_key_function(declared.call, workflow, given)
    if rule.key_in_code:
        raise UsageError(
            f"{workflow} was not started: its key is a function, which only a process with its code can call.",
            hint="Start it where its app runs, or over the API of its server; or write the key in CEL.",
            code="start.key_in_code",
        )
    if not rule.key:
        return [""]
    if items is not None:
        bindings = [{**(item if isinstance(item, dict) else {}), ITEM: item} for item in items]
    else:
        defaults = msgspec.json.decode(rule.defaults) if bytes(rule.defaults) else {}
        whole = {**defaults, **named}
        bindings = [{**whole, INPUT: whole}]
    return [_evaluate_expression(rule.key, workflow, one) for one in bindings]


def _evaluate_expression(key: str, workflow: str, bindings: Mapping[str, Any]) -> Any:
    from weft.conditions import compile_expression  # noqa: PLC0415 - slow to import, and only for workflows with rules

    try:
        return compile_expression(key).evaluate(bindings)
    except WeftError as error:
        raise BadValue(
            f"{workflow} was not started: its key `{key}` fails on this input. {error.message}",
            hint=f"Give what the key reads, or change the key. {NOT_STARTED}",
            code="start.bad_key",
        ) from error


def _call_key_function(call: Callable[[bytes], Sequence[Any]], workflow: str, given: bytes) -> Sequence[Any]:
    try:
        return call(given)
    except WeftError:
        raise
    except BaseException as error:  # also SystemExit: code of users must not end the host
        raise BadValue(
            f"{workflow} was not started: its key raised {error_phrase(error)}.",
            hint=f"Give what the key reads, or change the key. {NOT_STARTED}",
            code="start.bad_key",
        ) from error


def _key_text(rule: StartRule, workflow: str, value: Any) -> str:
    """Return a key as text. The number 5 and the text "5" are the same key."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = to_encodable(value)  # of the built-in class: what another class says about itself is code of users
    if isinstance(value, int) and abs(value) >= 10**KEY_CHARS_MAX:
        raise BadValue(
            f"{workflow} was not started: its key is a number with more than {KEY_CHARS_MAX} digits.",
            hint="Choose a shorter key, such as an id.",
            code="start.bad_key",
        )
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float) and value.is_integer():
        text = str(int(value))
    elif isinstance(value, int | float | str):
        text = str(value)
    else:
        raise BadValue(
            f"{workflow} was not started: its key must be text, a number or a boolean, "
            f"not {values.preview_text(value)}.",
            hint=f"{f'The key is `{rule.key}`. ' if rule.key else ''}{NOT_STARTED}",
            code="start.bad_key",
        )
    if not is_storable_text(text):
        raise BadValue(
            f"{workflow} was not started: its key has a character that cannot be stored: NUL, or half of a pair.",
            hint="Choose another key, such as an id.",
            code="start.bad_key",
        )
    if len(text) > KEY_CHARS_MAX:
        raise BadValue(
            f"{workflow} was not started: its key has {len(text)} characters; the limit is {KEY_CHARS_MAX}.",
            hint="Choose a shorter key, such as an id.",
            code="start.bad_key",
        )
    return text
