"""Read the work of a node: exactly one of the fields below, or a registered type.

The older formats write ``type``, and the rest in ``config``, ``config_ref``, ``agent_config`` or ``human_config``.
There, ``type: task`` is redundant beside ``step``. A task without ``step`` runs the step that its configuration names
(``action``), or else the step that has the name of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.core.code.locations import check_name
from weft.core.findings import At, did_you_mean
from weft.core.graph.model import (
    AskWork,
    Expr,
    GoalWork,
    HttpWork,
    PassWork,
    PipelineWork,
    ReceiveWork,
    ReplyWork,
    ScriptWork,
    StepWork,
    TypeWork,
    WaitWork,
    Work,
    WorkflowWork,
)
from weft.documents.fields import Fields
from weft.documents.questions import QUESTION, read_question
from weft.documents.schema_words import field_schema, schema_misfits
from weft.documents.scripts import LONG, read_script
from weft.errors import BadValue, WeftError
from weft.graphs.agents import read_agent

LANGUAGES = {"lua": "lua", "ale": "ale"}
SCRIPT = (*LANGUAGES, *LONG)
HTTP = ("url", "method", "headers", "query", "body", "accept", "answer", "health")
ASK = (*QUESTION, "about", "timeout")
HUMAN = ("title", "timeout_hours", "approvers", "escalation_policy", "approval_ui_url")
WORKFLOW = ("name", "workflow", "version", "inherit_artifacts", "on_failure")
RECEIVE = ("name", "type", "timeout")
ANSWER = ("to", "value")
REFERENCE = ("type_url", "cas_ref")
HasBlob = Callable[[str], bool]
"""Returns whether a blob exists, as far as that can be known."""
NodeTypes = Mapping[str, "dict[str, Any] | None"]
"""Registered node types by name, each with the JSON Schema of its configuration if it has one."""


class NodeWork:
    """Reads the work of one node."""

    def __init__(self, name: str, node: Fields, types: NodeTypes, has_blob: HasBlob) -> None:
        self.name = name
        self.node = node
        self.types = types
        self.has_blob = has_blob
        self.at: At = node.at
        self.input: dict[str, Any] | None = None
        """Arguments from the configuration of a task."""

    def read(self) -> Work:
        """Read the work of the node. Returns ``pass`` after reporting a problem."""
        node = self.node
        words = [word for word in node.raw if word in WORDS or word in self.types]
        if len(words) > 1:
            words.sort(key=[*WORDS, *self.types].index)
        typed = "type" in node
        if typed and node.raw["type"] == "task" and "step" in words:
            typed = False
        if len(words) + typed > 1:
            both = " and ".join([*words, *(["type"] if typed else [])])
            node.problems.add("two_works", node.at, f"a node has only one kind of work, not {both}.")
        if typed and not words:
            return self._read_type_and_config()
        if words:
            self.at = node.place(words[0])
            if words[0] in WORDS:
                return WORDS[words[0]](self, words[0], self._read_config_reference())
            return self._read_registered_type(words[0], node.raw[words[0]])
        if not {"join", "fan_in", "merge", "wait_for_all"} & set(node.raw):
            node.problems.add("no_work", node.at, f"{self.name} has no work.", "Write step: …, or pass: true.")
        return PassWork()

    def _read_type_and_config(self) -> Work:
        """Read the older spelling: ``type`` and a configuration."""
        node = self.node
        word = node.text("type")
        config = node.raw.get("config")
        if "config" in node:
            self.at = node.place("config")
        reference = self._read_config_reference()
        match word:
            case "":
                return PassWork()
            case "task":
                return self._task(reference)
            case "human" if "human_config" in node or "config" not in node:
                self.at = node.place("human_config") if "human_config" in node else node.at
                return self._read_human(node.raw.get("human_config", {}))
            case "agent" if word not in self.types:
                key = node.spelling("agent_config", "config")
                self.at = node.place(key) if key in node else node.at
                return read_agent(node, key, reference, older=True)
            case _ if word in WORDS:
                node.raw[word] = config
                return WORDS[word](self, word, reference)
            case _:
                self.at = node.place("config") if "config" in node else node.place("type")
                return self._read_registered_type(word, config)

    def _task(self, reference: str) -> Work:
        config = self.node.raw.get("config", {})
        if not isinstance(config, dict):
            self.node.wrong("config", "a mapping")
            return PassWork()
        rest = {key: value for key, value in config.items() if key != "action"}
        self.input = rest or None
        action = config.get("action", self.name)
        if not isinstance(action, str) or not action:
            self.node.problems.add("wrong_type", (*self.node.place("config"), "action"), "must be the name of a step.")
            return PassWork()
        return StepWork(action, reference)

    def _read_config_reference(self) -> str:
        """Read the reference to the blob with the configuration."""
        node = self.node
        if "config_ref" not in node:
            return ""
        if "config" in node:
            node.spelling("config", "config_ref")
        raw = node.raw["config_ref"]
        if isinstance(raw, str):
            return self._blob_reference(node, "config_ref")
        reference = Fields(raw, node.place("config_ref"), node.problems, REFERENCE)
        if reference.raw and "cas_ref" not in reference:
            reference.needed("cas_ref")
        return self._blob_reference(reference, "cas_ref")

    def _blob_reference(self, fields: Fields, key: str) -> str:
        reference = fields.text(key)
        if reference and not self.has_blob(reference):
            fields.problems.add(
                "no_blob", fields.place(key), f"there is no blob {reference} in the store.", "Store the blob first."
            )
        return reference

    def _read_registered_type(self, name: str, config: Any) -> Work:
        if name not in self.types:
            known = [*WORDS, "task", *self.types]
            at = self.node.place("type")
            self.node.problems.add("unknown_type", at, f'there is no node type "{name}".', did_you_mean(name, known))
            return PassWork()
        reference = self._read_config_reference()
        schema = self.types[name]
        # The values of templates and blobs are known only when the node runs.
        if schema is not None and not reference and "${" not in str(config):
            for message in schema_misfits(schema, {} if config is None else config):
                self.node.problems.add("bad_config", self.at, message)
        return TypeWork(name, Expr(config) if config is not None else None, reference)

    def _step(self, key: str, reference: str) -> Work:
        return StepWork(self.node.text(key) or self.name, reference)

    def _http(self, key: str, _: str) -> Work:
        request = Fields(self.node.raw[key], self.node.place(key), self.node.problems, HTTP)
        if request.raw and "url" not in request:
            request.needed("url")
        request.text("url")
        request.text("method")
        return HttpWork(Expr(request.raw))

    def _script(self, key: str, _: str) -> Work:
        if not isinstance(self.node.raw[key], dict):
            self.node.wrong(key, "{lua: …} or {ale: …}")
            return PassWork()
        script = read_script(self.node, key, LANGUAGES)
        if script is None:
            return PassWork()
        self._check_script(*script)
        return ScriptWork(*script)

    def _check_script(self, language: str, source: str) -> None:
        """Compile a script with the names of its inputs."""
        from weft.scripts import compile_script  # noqa: PLC0415  # import only for documents with scripts

        mapped = self.node.raw.get("with", self.node.raw.get("input_mapping"))
        try:
            compile_script(language, source, sorted(mapped) if isinstance(mapped, dict) else ["input"])
        except WeftError as error:
            self.node.problems.add("bad_script", self.at, error.message, error.hint)

    def _pipeline(self, key: str, _: str) -> Work:
        from weft.pipelines.pipeline import pipeline_faults  # noqa: PLC0415  # import only for documents with pipelines

        raw = self.node.raw[key]
        for fault in pipeline_faults(raw, templates=True):
            at = self.at if fault.index is None else (*self.at, fault.index)
            self.node.problems.add("bad_pipeline", at, fault.message, fault.hint)
        return PipelineWork(Expr(raw))

    def _workflow(self, key: str, _: str) -> Work:
        raw = self.node.raw[key]
        if not isinstance(raw, dict):
            _refuse_artifacts(self.node)
            return WorkflowWork(self.node.text(key))
        call = Fields(raw, self.node.place(key), self.node.problems, WORKFLOW)
        name = call.spelling("name", "workflow")
        if call.raw and name not in call:
            call.needed("name")
        _refuse_artifacts(call if "inherit_artifacts" in call else self.node)
        return WorkflowWork(call.text(name), call.text("version"))

    def _goal(self, key: str, _: str) -> Work:
        goals = self.node.texts(key)
        if not goals and self.node.raw[key] in ([], None):
            self.node.wrong(key, "at least one goal")
        return GoalWork(goals)

    def _agent(self, key: str, reference: str) -> Work:
        return read_agent(self.node, key, reference, older=False)

    def _wait(self, key: str, _: str) -> Work:
        return WaitWork(self.node.duration(key))

    def _receive(self, key: str, _: str) -> Work:
        raw = self.node.raw[key]
        if isinstance(raw, str):
            return ReceiveWork(self._message_name(raw, self.node.place(key)))
        receive = Fields(raw, self.node.place(key), self.node.problems, RECEIVE)
        if receive.raw and "name" not in receive:
            receive.needed("name")
        schema = None
        if "type" in receive:
            schema = field_schema(receive.raw["type"], receive.place("type"), receive.problems)
        name = self._message_name(receive.text("name"), receive.place("name"))
        return ReceiveWork(name, schema, receive.duration("timeout"))

    def _message_name(self, name: str, at: At) -> str:
        try:
            return check_name(name) if name else name
        except BadValue as error:
            self.node.problems.add("wrong_type", at, error.message, error.hint)
            return name

    def _answer(self, key: str, _: str) -> Work:
        answer = Fields(self.node.raw[key], self.node.place(key), self.node.problems, ANSWER)
        if answer.raw and "to" not in answer:
            answer.needed("to")
        return ReplyWork(answer.text("to"), Expr(answer.raw.get("value")))

    def _pass(self, key: str, _: str) -> Work:
        if self.node.raw[key] is not True:
            self.node.wrong(key, "true")
        return PassWork()

    def _ask(self, key: str, _: str) -> Work:
        raw = self.node.raw[key]
        if key == "human" and isinstance(raw, dict) and set(raw) & set(HUMAN[1:]):
            return self._read_human(raw)
        ask = Fields(raw, self.node.place(key), self.node.problems, ASK)
        question = read_question(ask, self.name)
        return AskWork(
            title=Expr(question.title),
            about=Expr(ask.raw["about"]) if "about" in ask else None,
            form=question.form,
            of=question.of,
            quorum=question.quorum,
            timeout_ms=ask.duration("timeout"),
            on_timeout=question.on_timeout,
            escalate=question.escalate,
            four_eyes=question.four_eyes,
            remind_ms=question.remind_ms,
        )

    def _read_human(self, raw: Any) -> Work:
        """Read a question in the older spelling. Without an answer, it is rejected, unless the policy approves it."""
        human = Fields(raw, self.at, self.node.problems, HUMAN)
        hours = human.raw.get("timeout_hours", 0)
        if not isinstance(hours, int | float) or isinstance(hours, bool) or not 0 <= hours <= 1_000_000:
            human.wrong("timeout_hours", "a number of hours")
            hours = 0
        url = human.text("approval_ui_url")
        policies = {"auto_approve": "approve", "auto_approve_after_timeout": "approve", "auto_reject": "reject"}
        return AskWork(
            title=Expr(human.text("title") or self.name),
            about=Expr({"approval_ui_url": url}) if url else None,
            of=human.texts("approvers"),
            timeout_ms=round(hours * 3_600_000),
            on_timeout=human.choice("escalation_policy", policies, "reject"),  # type: ignore[arg-type]
        )


def _refuse_artifacts(holder: Fields) -> None:
    """Report ``inherit_artifacts: true``, because runs have no artifacts."""
    if holder.flag("inherit_artifacts", default=False):
        holder.wrong("inherit_artifacts", "false or absent: pass the input of the child with `with`")


WORDS: dict[str, Callable[[NodeWork, str, str], Work]] = {
    "step": NodeWork._step,  # noqa: SLF001
    "http": NodeWork._http,  # noqa: SLF001
    "script": NodeWork._script,  # noqa: SLF001
    "pipeline": NodeWork._pipeline,  # noqa: SLF001
    "workflow": NodeWork._workflow,  # noqa: SLF001
    "workflow_call": NodeWork._workflow,  # noqa: SLF001
    "goal": NodeWork._goal,  # noqa: SLF001
    "ask": NodeWork._ask,  # noqa: SLF001
    "human": NodeWork._ask,  # noqa: SLF001
    "agent": NodeWork._agent,  # noqa: SLF001
    "wait": NodeWork._wait,  # noqa: SLF001
    "receive": NodeWork._receive,  # noqa: SLF001
    "answer": NodeWork._answer,  # noqa: SLF001
    "pass": NodeWork._pass,  # noqa: SLF001
}
"""The reader of each field, in the order in which messages list the fields."""
