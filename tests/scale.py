"""How much a test proves: a sample in ``make test``, all of it in ``make proof``.

A module whose size depends on it says ``pytestmark = scale.MARKS``, so that ``make proof`` runs it again, at full size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

IS_PROOF = os.environ.get("WEFT_PROOF") == "1"
MARKS = [pytest.mark.proof] if IS_PROOF else []


def scaled(sample: T, proof: T) -> T:
    """Choose by how much is to be proved."""
    return proof if IS_PROOF else sample


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of which only the first few are for ``make test``."""
    return [
        value if n < count else pytest.param(value, marks=pytest.mark.proof) for n, value in enumerate(list(values))
    ]
