"""The step that fetches data. It only describes the request; what performs the pipeline sends it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta
from msgspec import field as named

from weft.core.durations import duration_ms
from weft.errors import UsageError
from weft.pipelines.faults import StepFault
from weft.pipelines.limits import HTTP_S_MAX
from weft.pipelines.steps.base import PipelineStep

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class HttpRequestStep(PipelineStep, frozen=True, kw_only=True):
    """Fetch a document: JSON, or else text. It replaces the data. GET sends params as query, POST as JSON."""

    url: Annotated[str, Meta(min_length=1, max_length=8_192)]
    method: Literal["GET", "POST"] = "GET"
    params: dict[str, Any] = named(default_factory=dict)
    headers: dict[str, str] = named(default_factory=dict)
    auth_profile: str = ""
    """The name of the credentials to use, as the settings have them. They go to their hosts only."""
    timeout: str | float = HTTP_S_MAX
    """Seconds, or a duration such as "10s"."""

    @property
    def address(self) -> str:
        """The URL, with its scheme."""
        return self.url if _SCHEME.match(self.url) else f"https://{self.url}"

    @property
    def timeout_ms(self) -> int:
        """The time limit of the request. Raises StepFault."""
        try:
            found = duration_ms(self.timeout)
        except UsageError as error:
            raise StepFault("bad_argument", f"timeout: {error.message}", error.hint) from None
        if not 0 < found <= HTTP_S_MAX * 1_000:
            raise StepFault("bad_argument", f"timeout is not between 0 and {HTTP_S_MAX:.0f} s.")
        return found

    def check(self) -> None:
        self.timeout_ms  # noqa: B018 - reading it checks it
        if self.address.partition(":")[0].lower() not in ("http", "https"):
            raise StepFault("bad_argument", "url does not begin with https:// or http://.")
        if self.method == "GET":
            for name, value in self.params.items():
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, dict | list):
                        raise StepFault(
                            "bad_argument", f"params.{name} cannot be sent in a query.", "Use method POST, or a text."
                        )

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        raise AssertionError("a request is sent by what performs the pipeline")
