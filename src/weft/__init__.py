"""Weft: durable workflows for Python. Write a process as code; it runs to the end, whatever crashes in between."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.authoring.app import App
    from weft.authoring.bulk import Bulk
    from weft.authoring.client import Client
    from weft.authoring.context import Call, Context, context
    from weft.authoring.facts import Facts
    from weft.authoring.goals import Goal, Plan
    from weft.authoring.graphs import Graph, GraphNode
    from weft.authoring.group import Group
    from weft.authoring.handles import ChildHandle, Event, Handle
    from weft.authoring.messages import Message
    from weft.authoring.needs import Const, Each, Fact, ale, lua
    from weft.authoring.policies import Duration, Retry
    from weft.authoring.results import Again, Answer, Done, Err, Ok, Turn, Winner, again, done
    from weft.authoring.schedules import Schedules
    from weft.authoring.steps import Step
    from weft.authoring.workflows import Workflow
    from weft.core.findings import Finding
    from weft.errors import (
        AlreadyDecided,
        BadDuration,
        BadGraph,
        BadPatch,
        BadPlan,
        BadSchedule,
        BadValue,
        BranchesFailed,
        Conflict,
        Corrupt,
        Critical,
        Diverged,
        Evicted,
        Failure,
        Fenced,
        ForeignAwait,
        Full,
        IdTaken,
        KeyReused,
        LimitExceeded,
        LoopRunning,
        MissingExtra,
        NameTaken,
        NewerSchema,
        NoContext,
        NotAllowed,
        NotAsync,
        NotFound,
        NotOver,
        NotRunning,
        OutcomeUnknown,
        PatchRefused,
        Refused,
        Rollback,
        RunAtImport,
        RunCancelled,
        RunFailed,
        RunFinished,
        RunKept,
        RunUndone,
        RunUnreadable,
        StaleBase,
        StepFailed,
        StepTimedOut,
        StoreError,
        TimedOut,
        Unavailable,
        UnknownStep,
        UnknownWorkflow,
        UsageError,
        WeftError,
        WorkerLost,
    )
    from weft.observe.explanation import Explanation
    from weft.observe.live_check import LiveGroup, LiveReport
    from weft.runtime.bulk_plan import BulkResult, RefusedRuns
    from weft.runtime.schedules import AddedSchedule, NominalTime, Schedule
    from weft.steps.node_types import NodeType, register_node_type
    from weft.steps.secrets import Secret
    from weft.steps.task import Task, task

__all__ = [
    "AddedSchedule",
    "Again",
    "AlreadyDecided",
    "Answer",
    "App",
    "BadDuration",
    "BadGraph",
    "BadPatch",
    "BadPlan",
    "BadSchedule",
    "BadValue",
    "BranchesFailed",
    "Bulk",
    "BulkResult",
    "Call",
    "ChildHandle",
    "Client",
    "Conflict",
    "Const",
    "Context",
    "Corrupt",
    "Critical",
    "Diverged",
    "Done",
    "Duration",
    "Each",
    "Err",
    "Event",
    "Evicted",
    "Explanation",
    "Fact",
    "Facts",
    "Failure",
    "Fenced",
    "Finding",
    "ForeignAwait",
    "Full",
    "Goal",
    "Graph",
    "GraphNode",
    "Group",
    "Handle",
    "IdTaken",
    "KeyReused",
    "LimitExceeded",
    "LiveGroup",
    "LiveReport",
    "LoopRunning",
    "Message",
    "MissingExtra",
    "NameTaken",
    "NewerSchema",
    "NoContext",
    "NodeType",
    "NominalTime",
    "NotAllowed",
    "NotAsync",
    "NotFound",
    "NotOver",
    "NotRunning",
    "Ok",
    "OutcomeUnknown",
    "PatchRefused",
    "Plan",
    "Refused",
    "RefusedRuns",
    "Retry",
    "Rollback",
    "RunAtImport",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "RunKept",
    "RunUndone",
    "RunUnreadable",
    "Schedule",
    "Schedules",
    "Secret",
    "StaleBase",
    "Step",
    "StepFailed",
    "StepTimedOut",
    "StoreError",
    "Task",
    "TimedOut",
    "Turn",
    "Unavailable",
    "UnknownStep",
    "UnknownWorkflow",
    "UsageError",
    "WeftError",
    "Winner",
    "WorkerLost",
    "Workflow",
    "again",
    "ale",
    "context",
    "done",
    "lua",
    "register_node_type",
    "task",
]

if not TYPE_CHECKING:
    # Loaded at first use: `import weft` and `weft --help` must not pay for an engine that they do not start.
    _HOMES = (
        "errors",
        "steps.task",
        "authoring.app",
        "authoring.bulk",
        "authoring.client",
        "authoring.context",
        "authoring.facts",
        "authoring.goals",
        "authoring.graphs",
        "authoring.group",
        "authoring.handles",
        "authoring.messages",
        "authoring.needs",
        "authoring.policies",
        "authoring.results",
        "authoring.schedules",
        "authoring.steps",
        "authoring.workflows",
        "core.findings",
        "observe.explanation",
        "observe.live_check",
        "steps.node_types",
        "steps.secrets",
    )

    def __getattr__(name: str) -> object:
        if name in __all__:
            for home in _HOMES:
                module = import_module(f"weft.{home}")
                if hasattr(module, name):
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module 'weft' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
