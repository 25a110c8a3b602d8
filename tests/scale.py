"""How much a test proves: a sample in ``make test``, all of it in ``make proof``.

A module whose size depends on it says ``pytestmark = scale.MARKS``, so that ``make proof`` runs it again, at full size.
A family of cases says ``first`` or ``sample``: the cases that are left out of ``make test`` are not even collected
there. ``WEFT_PROOF=1 pytest tests/...`` runs all of them, and ``WEFT_PROOF=soak``, as ``make soak``, also plays as many
random worlds as hours allow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

IS_SOAK = os.environ.get("WEFT_PROOF") == "soak"
IS_PROOF = IS_SOAK or os.environ.get("WEFT_PROOF") == "1"
MARKS = [pytest.mark.proof] if IS_PROOF else []


def scaled(sample: T, proof: T, soak: T | None = None) -> T:
    """Choose by how much is to be proved; a soak without a size of its own is as large as the proof."""
    if IS_SOAK and soak is not None:
        return soak
    return proof if IS_PROOF else sample


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only the first few are for ``make test``: for seeds, and what is ordered by cost."""
    return _parameters(list(values), range(count))


def sample(count: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only some, evenly spread, are for ``make test``: for cases that are much alike.

    A tuple is one value for each of several names.
    """
    found = list(values)
    count = min(count, len(found))
    return _parameters(found, {n * len(found) // count for n in range(count)})


def _parameters(values: list[Any], in_sample: Iterable[int]) -> list[Any]:
    chosen = set(in_sample)
    if not IS_PROOF:
        return [value for n, value in enumerate(values) if n in chosen]
    return [value if n in chosen else _proof(value) for n, value in enumerate(values)]


def _proof(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.proof)
