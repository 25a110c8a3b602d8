"""The step that reads dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from msgspec import Meta

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import FORMAT_CHARS_MAX
from weft.pipelines.rows import check_rows, field_values, is_absent, is_number, named_kind
from weft.pipelines.steps.base import PipelineStep

_ISO: Final = re.compile(r"[0-9][0-9Ww:.,+\- Tt]*[0-9Zz]", re.ASCII)
_RFC_5322: Final = re.compile(
    r"(?:[A-Za-z]{3},\s+)?\d{1,2}\s+[A-Za-z]{3}\s+\d{4}\s+\d{2}:\d{2}(?::\d{2})?\s+(?:[+-]\d{4}|[A-Z]{1,4})", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_CHARS_MAX: Final = 200


class ParseDate(PipelineStep, frozen=True, kw_only=True):
    """Turn a field into an ISO 8601 date and time with its offset. Day and month are never guessed."""

    field: str
    format: Annotated[str, Meta(max_length=FORMAT_CHARS_MAX)] = ""
    timezone: str = "UTC"
    into: str = ""
    on_error: Literal["fail", "null"] = "fail"

    def check(self) -> None:
        zone(self.timezone)
        if self.format and self.format not in ("unix", "unix_ms"):
            try:
                datetime.strptime(datetime(2000, 2, 3, tzinfo=UTC).strftime(self.format), self.format)  # noqa: DTZ007
            except (ValueError, re.error) as error:
                raise StepFault("bad_argument", f"format {self.format!r} cannot be used: {error}.") from None

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        rows = check_rows(data)
        read, into = self._reader(), self.into or self.field
        found = []
        for index, (row, value) in enumerate(zip(rows, field_values(rows, self.field), strict=True)):
            try:
                date = None if is_absent(value) else read(value).isoformat()
            except (ValueError, OverflowError) as error:
                if self.on_error == "fail":
                    raise self._fault(index, value, error) from None
                date = None
            found.append({**row, into: date})
        return found

    def _fault(self, index: int, value: Any, error: Exception) -> StepFault:
        shown = f'"{value[:60]}"' if type(value) is str else str(value)[:60]
        why = f" ({error})" if type(value) not in (str, int, float) else ""
        hint = (
            "Give its format, or on_error: null." if not self.format else "Correct the format, or use on_error: null."
        )
        return StepFault("bad_value", f"{self.field} of row {index} is not a date: {shown}{why}.", hint)

    def _reader(self) -> Callable[[Any], datetime]:
        local = zone(self.timezone)
        if self.format in ("unix", "unix_ms"):
            unit = 1 if self.format == "unix" else 1_000
            return lambda value: _at_unix(value, unit).astimezone(local)
        if self.format:
            form = self.format
            return lambda value: _placed(datetime.strptime(_date_text(value), form), local)  # noqa: DTZ007
        return lambda value: _placed(_parse_standard_date(_date_text(value)), local)


def zone(name: str) -> tzinfo:
    """Return the time zone with this name. Raises StepFault."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a ZoneInfoNotFoundError is a KeyError
        raise StepFault(
            "bad_argument", f'there is no time zone "{name[:60]}".', 'Write it like "Europe/Berlin".'
        ) from None


def _parse_standard_date(text: str) -> datetime:
    """Read a date in ISO 8601 or RFC 5322. Raises ValueError."""
    if _ISO.fullmatch(text):
        return datetime.fromisoformat(text.upper())
    if _RFC_5322.fullmatch(text):
        return parsedate_to_datetime(text)
    raise ValueError("neither ISO 8601 nor RFC 5322")


def _date_text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{named_kind(value)}, not a text")
    text = value.strip()
    if len(text) > _TEXT_CHARS_MAX:
        raise ValueError("too long")
    return text


def _at_unix(value: Any, unit: int) -> datetime:
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?", value.strip(), re.ASCII):
        value = float(value) if "." in value else int(value)
    if not is_number(value):
        raise ValueError(f"{named_kind(value)}, not a number of seconds")
    return _EPOCH + timedelta(seconds=value) if unit == 1 else _EPOCH + timedelta(milliseconds=value)


def _placed(date: datetime, local: tzinfo) -> datetime:
    return date if date.tzinfo is not None else date.replace(tzinfo=local)
