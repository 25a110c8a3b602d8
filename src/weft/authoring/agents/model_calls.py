"""Ask the model of a turn, and those that stand in for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.agents.models.failures import CONTEXT, REJECTED, UNAVAILABLE, ModelFailed
from weft.agents.models.step import AskModel, ModelAnswer, read_answer
from weft.authoring.agents.covers import model_cover
from weft.authoring.agents.operations import TaskOrder, loop_scope, perform_task
from weft.authoring.agents.permission import RunPolicy
from weft.core.budgets import Cover
from weft.errors import StepFailed, UsageError
from weft.runtime.run.scopes import CURRENT
from weft.steps.failures import recorded_hint
from weft.steps.task import MODEL

_encode = msgspec.json.Encoder().encode


class ModelAsker:
    """Asks the models of one run, as far as the policy permits it."""

    def __init__(self, aliases: ModelAliases, models: Sequence[str], policy: RunPolicy) -> None:
        self._aliases = aliases
        self._models = tuple(models)
        self._policy = policy

    @property
    def context(self) -> int | None:
        """How many tokens the first model takes in; None if that is not known."""
        return self._alias(self._models[0]).context

    async def ask(self, asked: AskModel, input_tokens: int, place: str = "model") -> ModelAnswer:
        """Ask the first model that is permitted and available. ``input_tokens`` is about how long the request is.

        Each is a task of its own: ``model``, ``model/2`` and so on. Raises NotAllowed if none is permitted, and
        ModelFailed: ``model.unavailable`` if none is available, ``model.rejected`` or ``model.context``. Raises
        BudgetExceeded if not enough is left for the call.
        """
        last: Exception | None = None
        for number, alias in enumerate(self._models, 1):
            prices = self._alias(alias).prices
            refused = await self._policy.refusal(alias, prices.currency if prices is not None else "")
            if refused is not None:
                last = last or refused
                continue
            try:
                cover = model_cover(self._alias(alias), input_tokens)
                return await self._call(msgspec.structs.replace(asked, alias=alias), cover, place, number)
            except StepFailed as failed:
                last = _of_model(failed)
                if failed.failure.code != UNAVAILABLE:
                    raise last from failed
        assert last is not None, "an agent has a model"
        raise last

    def _alias(self, name: str) -> ModelAlias:
        """Return a model that the run began with. If the program no longer has it, the run is held."""
        found = self._aliases.find(name)
        if found is None:
            driver = loop_scope().driver
            run = driver.machine.state.run_id
            message = f'{run} began with the model "{name}", and this program has no model of that name.'
            hint = f"Declare it again, in the program or in pyproject.toml. Then: weft resume {run}"
            driver.stop(UsageError(message, hint=hint, code="model.unknown"))
        return found

    async def _call(self, call: AskModel, cover: Cover, place: str, number: int) -> ModelAnswer:
        policy = msgspec.structs.replace(self._alias(call.alias).policy, agent=self._policy.agent)
        order = TaskOrder(place=place, step=MODEL, given=_encode(call), policy=policy, cover=cover)
        if number == 1:
            return read_answer((await perform_task(order)).raw)
        outer = CURRENT.set(loop_scope().inside(place, 1))
        try:
            return read_answer((await perform_task(msgspec.structs.replace(order, place=str(number)))).raw)
        finally:
            CURRENT.reset(outer)


def _of_model(failed: StepFailed) -> Exception:
    """Return the failure of a model as itself; any other failure of the step stays what it is."""
    failure = failed.failure
    if failure.code not in (UNAVAILABLE, REJECTED, CONTEXT):
        return failed
    return ModelFailed(failure.message, code=failure.code, hint=recorded_hint(failure))
