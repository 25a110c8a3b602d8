"""Read how a step is performed.

A document has exactly one of ``step``, ``agent``, ``http``, ``script``, ``pipeline``, ``goal``, ``workflow`` and
``ask``. The older format has ``type`` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from weft.core.findings import At
from weft.core.goal.definitions import (
    INSIDE,
    AskWay,
    Give,
    GoalWay,
    HttpWay,
    Need,
    PipelineWay,
    ScriptWay,
    StepWay,
    Way,
    WorkflowWay,
)
from weft.documents.fields import Fields
from weft.documents.questions import QUESTION, read_question
from weft.errors import BadValue
from weft.goals.values import read_goal_script, read_ms
from weft.steps.http.urls import url_names

Method = Literal["GET", "POST", "PUT", "DELETE", "PATCH"]
METHODS: dict[str, Method] = {"GET": "GET", "POST": "POST", "PUT": "PUT", "DELETE": "DELETE", "PATCH": "PATCH"}
ANSWERS: dict[str, Literal["now", "later"]] = {"now": "now", "later": "later"}
TYPES = {"sync": "http", "async": "http", "script": "script", "flow": "flow"}
BODIES: dict[str, Literal["envelope", "bare"]] = {"envelope": "envelope", "bare": "bare"}
WEBHOOKS: dict[str, Literal["signature", "url"]] = {"signature": "signature", "url": "url"}
HTTP = (
    "url", "method", "answer", "body", "webhook", "headers", "health", "compensate", "endpoint", "timeout",
    "health_check",
)  # fmt: skip
FLOW = ("goals", "input_map", "output_map")
WORKFLOW = ("name", "version")


class StepWays:
    """Reads how one step is performed."""

    def __init__(self, step_id: str, step: Fields) -> None:
        self.id = step_id
        self.step = step
        self.at: At = step.at
        self.is_agent = False
        """Whether an agent performs the step. Its outputs are fields of what the agent answers."""
        self.timeout_ms = 0
        """The timeout that the older format has next to the URL."""
        self.renamed: dict[str, dict[str, str]] = {"needs": {}, "gives": {}}
        """The inner names of facts, from the maps of a flow. Their direction follows from the declared facts."""

    def read(self) -> Way | None:
        """Read how the step is performed. Returns None after reporting a problem."""
        step = self.step
        given = [word for word in READERS if word in step]
        kind = step.choice("type", TYPES, None) if "type" in step else None
        if kind is not None and kind not in given:
            step.problems.add("missing_field", step.place("type"), f"a {step.raw['type']} step needs {kind}.")
            return None
        if len(given) != 1:
            words = ", ".join(word for word in READERS if word != "flow")
            message = (
                f"a step is performed in one way, not by {' and '.join(given)}."
                if given
                else f"{self.id} does not say how it is performed."
            )
            step.problems.add("bad_way", step.at, message, f"Use exactly one of {words}.")
            return None
        self.at = step.place(given[0])
        return READERS[given[0]](self, given[0])

    def _step(self, key: str) -> Way | None:
        name = self.step.text(key)
        return StepWay(name) if name else None

    def _http(self, key: str) -> Way | None:
        raw = self.step.raw[key]
        call = Fields({"url": raw} if isinstance(raw, str) else raw, self.at, self.step.problems, HTTP)
        address, health = call.spelling("url", "endpoint"), call.spelling("health", "health_check")
        if call.raw and address not in call:
            call.needed("url")
        url = self._read_url(call, address)
        method = call.choice("method", METHODS, METHODS["POST"])
        answer = call.choice("answer", ANSWERS, "later" if self.step.raw.get("type") == "async" else "now")
        webhook = call.choice("webhook", WEBHOOKS, WEBHOOKS["signature"])
        if "webhook" in call and answer == "now":
            call.problems.add("bad_way", call.place("webhook"), "webhook applies only to answer: later.")
        if "timeout" in call:
            self.timeout_ms = read_ms(call, "timeout")
        check = self._read_url(call, health)
        if "{" in check:
            call.problems.add(
                "bad_way", call.place(health), "a health check takes no arguments, because it does not belong to a run."
            )
        if not url:
            return None
        return HttpWay(
            url=url,
            method=method,
            answer=answer,
            body=call.choice("body", BODIES, "envelope"),
            webhook=webhook,
            headers=texts_by_name(call, "headers"),
            health=check,
            compensate=self._read_url(call, "compensate"),
        )

    def _read_url(self, call: Fields, key: str) -> str:
        url = call.text(key)
        if url:
            try:
                url_names(url)
            except BadValue as error:
                call.problems.add("bad_way", call.place(key), error.message, error.hint)
        return url

    def _script(self, key: str) -> Way | None:
        script = read_goal_script(self.step, key)
        if script is not None and script.lang in INSIDE:
            hint = "script: {lua: …} or script: {ale: …}"
            self.step.problems.add("bad_way", self.at, "the script of a step must be in Lua or Ale.", hint)
            return None
        return ScriptWay(script) if script is not None else None

    def _pipeline(self, key: str) -> Way | None:
        from weft.pipelines.pipeline import pipeline_faults  # noqa: PLC0415 - only for documents with pipelines

        raw = self.step.raw[key]
        faults = list(pipeline_faults(raw))
        for fault in faults:
            at = self.at if fault.index is None else (*self.at, fault.index)
            self.step.problems.add("bad_pipeline", at, fault.message, fault.hint)
        return PipelineWay(raw) if not faults else None

    def _goal(self, key: str) -> Way | None:
        goals = self.step.texts(key)
        if not goals and self.step.raw[key] in ([], None):
            self.step.wrong(key, "at least one goal")
        return GoalWay(goals) if goals else None

    def _flow(self, key: str) -> Way | None:
        flow = Fields(self.step.raw[key], self.at, self.step.problems, FLOW)
        if flow.raw and "goals" not in flow:
            flow.needed("goals")
        self.renamed = {"needs": texts_by_name(flow, "input_map"), "gives": texts_by_name(flow, "output_map")}
        goals = flow.texts("goals")
        if not goals and flow.raw.get("goals") == []:
            flow.wrong("goals", "at least one goal")
        return GoalWay(goals) if goals else None

    def _workflow(self, key: str) -> Way | None:
        raw = self.step.raw[key]
        if not isinstance(raw, dict):
            name = self.step.text(key)
            return WorkflowWay(name) if name else None
        call = Fields(raw, self.at, self.step.problems, WORKFLOW)
        if "name" not in call:
            call.needed("name")
        name = call.text("name")
        return WorkflowWay(name, call.text("version")) if name else None

    def _agent(self, key: str) -> Way | None:
        name = self.step.text(key)
        self.is_agent = True
        return WorkflowWay(name) if name else None

    def _ask(self, key: str) -> Way | None:
        raw = self.step.raw[key]
        ask = Fields({"title": raw} if isinstance(raw, str) else raw, self.at, self.step.problems, QUESTION)
        return AskWay(**msgspec.structs.asdict(read_question(ask, self.id)))


READERS: dict[str, Callable[[StepWays, str], Way | None]] = {
    "step": StepWays._step,  # noqa: SLF001
    "http": StepWays._http,  # noqa: SLF001
    "script": StepWays._script,  # noqa: SLF001
    "pipeline": StepWays._pipeline,  # noqa: SLF001
    "goal": StepWays._goal,  # noqa: SLF001
    "workflow": StepWays._workflow,  # noqa: SLF001
    "agent": StepWays._agent,  # noqa: SLF001
    "ask": StepWays._ask,  # noqa: SLF001
    "flow": StepWays._flow,  # noqa: SLF001
}
"""The reader of each field, in the order in which messages list the fields."""


def texts_by_name(holder: Fields, key: str) -> dict[str, str]:
    """Return a mapping of names to texts."""
    raw = holder.raw.get(key, {})
    if not isinstance(raw, dict) or not all(isinstance(value, str) for value in raw.values()):
        holder.wrong(key, "a mapping of names to texts")
        return {}
    return dict(raw)


def rename_needs(needs: dict[str, Need], names: dict[str, str]) -> dict[str, Need]:
    """Set the inner names of needs from a flow's ``input_map``. Its direction follows from the declared needs."""
    inner = {**{b: a for a, b in names.items() if b in needs}, **{a: b for a, b in names.items() if a in needs}}
    return {
        fact: msgspec.structs.replace(need, name="" if inner[fact] == fact else inner[fact]) if fact in inner else need
        for fact, need in needs.items()
    }


def rename_gives(gives: dict[str, Give], names: dict[str, str]) -> dict[str, Give]:
    """Set the inner names of outputs from a flow's ``output_map``. Its direction follows from the declared outputs."""
    inner = {**{a: b for a, b in names.items() if a in gives}, **{b: a for a, b in names.items() if b in gives}}
    return {
        fact: msgspec.structs.replace(give, key="" if inner[fact] == fact else inner[fact]) if fact in inner else give
        for fact, give in gives.items()
    }
