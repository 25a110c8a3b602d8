"""The policy that a program brings along: ``App(policy=)``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UsageError

if TYPE_CHECKING:  # reading conditions is slow to import, and only for programs with a policy
    from weft.agents.policy.policy_rules import PolicyRules


class DeclaredPolicy:
    """A file or a mapping. A mapping is checked when it is declared, a file when the app is hosted."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._rules: PolicyRules | None = None

    def declare(self, policy: str | Path | Mapping[str, Any] | None) -> None:
        """Use this policy. Raises BadPolicy, UsageError."""
        if policy is None:
            return
        anything: object = policy  # type hints are not checked at run time
        if isinstance(anything, str | Path):
            self._file = Path(anything)
        elif isinstance(anything, Mapping):
            self._load(anything)
        else:
            raise UsageError(
                f"policy={str(policy)[:60]!r} is neither a file nor a mapping.", hint='Write policy="policy.yaml".'
            )

    def read(self) -> PolicyRules | None:
        """Return the policy; None if there is none. Raises BadPolicy, NotFound."""
        if self._file is not None and self._rules is None:
            self._load(self._file)
        return self._rules

    def _load(self, source: Path | Mapping[str, Any]) -> None:
        from weft.agents.policy.load import load_policy  # noqa: PLC0415 - see above

        self._rules = load_policy(source).policy
