"""The models that an app, its groups and the project declare. What a model needs is imported with the first one."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from weft.authoring.declared_servers import DeclaredServers
from weft.errors import NameTaken, UsageError
from weft.ports.tasks import STEP_LIMIT
from weft.runtime.key_limits import DeclaredLimit
from weft.settings import project_table
from weft.steps.task import MODEL

if TYPE_CHECKING:
    from weft.agents.models.aliases import ModelAlias, ModelAliases
    from weft.authoring.models import ModelOptions


class DeclaredModels:
    """The models of one group or app, by name. Names have no prefix: a model is the same for all groups.

    ``[tool.weft.models.NAME]`` in pyproject.toml declares more. The code comes first, so that a program and its
    operator do not disagree in silence about the same name.
    """

    def __init__(self, limits: MutableMapping[str, DeclaredLimit]) -> None:
        """``limits`` are those of the steps of this group or app, to which those of models are added."""
        self._own: dict[str, ModelAlias] = {}
        self._limits = limits
        self._parent: DeclaredModels | None = None
        self._project: dict[str, Any] | None = None
        self._aliases: ModelAliases | None = None
        self.servers = DeclaredServers()
        """The MCP servers whose tools agents may call."""

    def declare(self, name: str, url: str, options: ModelOptions) -> None:
        """Declare a model. Raises BadValue, BadDuration, NameTaken."""
        from weft.authoring.models import read_alias  # noqa: PLC0415 - only programs with models pay for it

        self._add(read_alias(name, url, options))

    def include(self, other: DeclaredModels) -> None:
        """Include the models of a group, also those that it declares later. Raises NameTaken."""
        for alias in other._own.values():
            self._add(alias)
        other._parent = self
        self.servers.include(other.servers)

    def _add(self, alias: ModelAlias) -> None:
        if self._own.setdefault(alias.name, alias) != alias:
            raise NameTaken(f'Two models are called "{alias.name}".', hint="Rename one: agents name their model by it.")
        self._limit(alias)
        if self._parent is not None:
            self._parent._add(alias)  # noqa: SLF001 - the same class

    def _limit(self, alias: ModelAlias) -> None:
        if alias.limit is not None:
            self._limits[f"{STEP_LIMIT}{MODEL}/{alias.name}"] = DeclaredLimit(alias.limit)

    def names(self) -> list[str]:
        """Return the names of all models that can be asked, sorted. Raises UsageError for bad settings."""
        return sorted({*self._own, *self._tables()})

    @property
    def aliases(self) -> ModelAliases:
        """All models that can be asked. Raises UsageError, BadValue for bad settings."""
        if self._aliases is None:
            from weft.agents.models.aliases import ModelAliases  # noqa: PLC0415

            self._aliases = ModelAliases(self._own, self._of_project())
        return self._aliases

    def _of_project(self) -> dict[str, ModelAlias]:
        """Return the models that only the project declares."""
        tables = self._tables()
        if not tables:
            return {}
        from weft.authoring.model_settings import alias_of_table  # noqa: PLC0415 - only projects with models pay for it

        found = {name: alias_of_table(name, table) for name, table in tables.items() if name not in self._own}
        for alias in found.values():
            self._limit(alias)
        return found

    def _tables(self) -> dict[str, Any]:
        if self._project is None:
            found = project_table().get("models", {})
            if not isinstance(found, dict):
                raise UsageError(
                    "[tool.weft] models is not a table.", hint='Write [tool.weft.models.fast] url = "https://…".'
                )
            self._project = found
        return self._project
