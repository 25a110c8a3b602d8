"""Models in ``pyproject.toml``: ``[tool.weft.models.NAME]``, with the arguments of ``app.model``."""

from __future__ import annotations

from typing import Any

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.prices import Prices
from weft.authoring.limits import Limit
from weft.authoring.models import ModelOptions, read_alias
from weft.core.findings import did_you_mean
from weft.errors import BadValue, UsageError, WeftError
from weft.settings import MODEL_KEYS
from weft.steps.secrets import Secret


def alias_of_table(name: str, table: object) -> ModelAlias:
    """Return the model that a table declares. Raises UsageError."""
    where = f"[tool.weft.models.{name}]"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table.", hint=f'Write {where} url = "https://…".')
    for key in table:
        if key not in MODEL_KEYS:
            near = did_you_mean(key, MODEL_KEYS)
            raise UsageError(f"{where} has no setting {key!r}.", hint=f"{near} It has {', '.join(MODEL_KEYS)}.".strip())
    try:
        return read_alias(name, table.get("url", ""), _options(table))
    except (WeftError, TypeError, ValueError) as error:
        hint = error.hint if isinstance(error, WeftError) else ""
        message = error.message if isinstance(error, WeftError) else f"{error}."
        raise UsageError(f"{where} is not valid: {message}", hint=hint) from error


def _options(table: dict[str, Any]) -> ModelOptions:
    options: dict[str, Any] = {key: value for key, value in table.items() if key != "url"}
    if "key" in table:
        options["key"] = _secret(table["key"])
    if "prices" in table:
        options["prices"] = Prices(**table["prices"])
    if "limit" in table:
        options["limit"] = Limit(**table["limit"])
    found: ModelOptions = options  # type: ignore[assignment]
    return found


def _secret(given: object) -> Secret:
    try:
        if isinstance(given, str):
            return Secret(given)
    except ValueError:
        pass
    # The value is not shown: it may be the key itself.
    raise BadValue("key is not the place of a key.", hint='Write key = "env:NAME" or key = "file:/path".') from None
