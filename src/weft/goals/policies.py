"""Read the policies of a step: ``retry``, ``timeout``, ``width``, ``cache``, ``undo``, or the older ``work_config``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from weft.core.events import DEFAULT_POLICY, Effect, Policy, UndoPlan
from weft.core.goal.definitions import COMPENSATE, AskWay, Cache, GoalWay, HttpWay, StepWay, Way, WorkflowWay
from weft.documents.fields import INTEGER_MAX, Fields
from weft.documents.policies import BACKOFFS, read_retry
from weft.goals.values import read_ms

WORK_CONFIG = (
    "max_retries", "backoff_ms", "init_backoff", "max_backoff_ms", "max_backoff", "backoff_type", "parallelism",
)  # fmt: skip
UNDO = ("step", "takes")
RESULT = "result"
EFFECTS: dict[str, Effect] = {"pure": "pure", "idempotent": "idempotent", "irreversible": "irreversible"}


class Steps(Protocol):
    """Looks up registered steps, which a document may name."""

    def step_policy(self, step: str) -> Policy | None: ...

    def step_undo(self, step: str) -> UndoPlan | None: ...

    def step_parameters(self, step: str) -> list[str] | None: ...


class NoSteps:
    """No registered steps."""

    def step_policy(self, step: str) -> Policy | None:
        return None

    def step_undo(self, step: str) -> UndoPlan | None:
        return None

    def step_parameters(self, step: str) -> list[str] | None:
        return None


class Policies:
    """Reads the policies of one step. Policies that the document omits come from the registered step."""

    def __init__(self, step: Fields, way: Way | None, steps: Steps) -> None:
        self.step = step
        self.way = way
        self.steps = steps
        self.config: Fields | None = None
        if "work_config" in step:
            self.config = Fields(step.raw["work_config"], step.place("work_config"), step.problems, WORK_CONFIG)
            for key in ("retry", "width"):
                if key in step:
                    step.spelling("work_config", key)

    def policy(self, timeout_ms: int) -> Policy:
        """Read how the step is retried. ``timeout_ms`` is the timeout next to the URL."""
        step = self.step
        base = (self.steps.step_policy(self.way.step) if isinstance(self.way, StepWay) else None) or DEFAULT_POLICY
        changes: dict[str, Any] = self._read_config() if self.config is not None else self._read_retry()
        if "delay_ms" in changes and "delay_ms_max" not in changes:
            changes["delay_ms_max"] = max(changes["delay_ms"], base.delay_ms_max)
        if "timeout" in step and timeout_ms:
            step.problems.add("two_spellings", step.place("timeout"), "timeout is given here and next to the URL.")
        timeout = step.duration("timeout") or timeout_ms
        if timeout:
            changes["timeout_ms"] = timeout
        if "queue" in step:
            changes["queue"] = step.text("queue") or base.queue
        if "effect" in step:
            changes["effect"] = step.choice("effect", EFFECTS, base.effect)
        if changes.get("effect", base.effect) == "irreversible":
            changes["attempts_max"] = 1
        policy = msgspec.structs.replace(base, **changes)
        return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy

    def _read_retry(self) -> dict[str, Any]:
        retry = read_retry(self.step)
        fields = {
            "attempts_max": retry.attempts,
            "backoff": retry.backoff,
            "delay_ms": retry.delay_ms,
            "delay_ms_max": retry.delay_ms_max,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _read_config(self) -> dict[str, Any]:
        config = self.config
        assert config is not None
        changes: dict[str, Any] = {}
        retries = config.raw.get("max_retries")
        if retries == -1 and not isinstance(retries, bool):
            changes["attempts_max"] = INTEGER_MAX
        elif config.integer("max_retries", least=0):
            changes["attempts_max"] = config.raw["max_retries"] + 1
        delay, most = config.spelling("init_backoff", "backoff_ms"), config.spelling("max_backoff", "max_backoff_ms")
        for name, key in (("delay_ms", delay), ("delay_ms_max", most)):
            if key in config:
                changes[name] = read_ms(config, key)
        backoff = config.choice("backoff_type", BACKOFFS, None)
        return {**changes, "backoff": backoff} if backoff is not None else changes

    def width(self) -> int:
        """Read how many work items run at once. 0 means one."""
        if self.config is not None:
            return self.config.integer("parallelism", least=0) or 1
        return self.step.integer("width") or 1

    def cache(self) -> Cache | None:
        """Read how long a result is reused for equal inputs: ``true``, or a duration."""
        step = self.step
        key = step.spelling("cache", "memoizable")
        raw = step.raw.get(key)
        if raw is None or raw is False:
            return None
        if isinstance(self.way, GoalWay | WorkflowWay | AskWay):
            step.problems.add("bad_cache", step.place(key), "runs and questions cannot be cached.")
            return None
        return Cache() if raw is True else Cache(step.duration(key))

    def undo(self, step_id: str, names: Sequence[str], policy: Policy) -> UndoPlan | None:
        """Read how the step is undone: ``undo`` names a step, ``compensate`` a URL.

        Without ``takes``, the undo step gets the ``names`` and the ``result`` that are among its parameters. The
        request to a ``compensate`` URL is retried like the step.
        """
        step = self.step
        raw = step.raw.get("undo")
        if isinstance(self.way, HttpWay) and self.way.compensate:
            if raw is not None:
                step.problems.add(
                    "two_spellings", step.place("undo"), "undo and http.compensate both say how to undo it."
                )
            if RESULT in names:
                hint = "Give the need another inner name."
                step.problems.add(
                    "bad_way", step.place("http"), f"compensate gets the result as an argument named {RESULT}.", hint
                )
            attempts = policy.attempts_max if policy.effect != "irreversible" else DEFAULT_POLICY.attempts_max
            undo_policy = msgspec.structs.replace(policy, effect="idempotent", attempts_max=attempts)
            return UndoPlan(f"{step_id}{COMPENSATE}", [*names, RESULT], undo_policy)
        if raw is None:
            return self.steps.step_undo(self.way.step) if isinstance(self.way, StepWay) else None
        undo = Fields({"step": raw} if isinstance(raw, str) else raw, step.place("undo"), step.problems, UNDO)
        if "step" not in undo:
            undo.needed("step")
        name = undo.text("step")
        if not name:
            return None
        known = self.steps.step_parameters(name)
        takes = undo.texts("takes") if "takes" in undo else known if known is not None else [*names, RESULT]
        return UndoPlan(name, takes, self.steps.step_policy(name) or DEFAULT_POLICY)
