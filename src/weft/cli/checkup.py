"""What ``weft doctor`` found: one line each."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["ok", "warn", "fail"]


class DoctorLine(msgspec.Struct, frozen=True):
    """The result of one check, and what to do about it."""

    check: str
    state: State
    text: str
    todo: str = ""


def ok(check: str, text: str) -> DoctorLine:
    """Return a finding that all is well."""
    return DoctorLine(check, "ok", text)


def warn(check: str, text: str, todo: str) -> DoctorLine:
    """Return a finding that something could be better."""
    return DoctorLine(check, "warn", text, todo)


def fail(check: str, text: str, todo: str) -> DoctorLine:
    """Return a finding that something does not work."""
    return DoctorLine(check, "fail", text, todo)
