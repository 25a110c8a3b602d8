"""Weft: durable workflows for Python. Write a process as code; it runs to the end, whatever crashes in between."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.agents.budget import Budget
    from weft.agents.failures import AgentFailed
    from weft.agents.models.failures import ModelFailed
    from weft.agents.models.prices import Prices
    from weft.authoring.agents.agent import Agent
    from weft.authoring.agents.reply import Reply, ToolCall, Usage
    from weft.authoring.app import App
    from weft.authoring.blocking.app import BlockingApp
    from weft.authoring.blocking.client import BlockingClient
    from weft.authoring.blocking.handles import BlockingBulk, BlockingHandle, BlockingSchedules, BlockingWorkflows
    from weft.authoring.bulk import Bulk
    from weft.authoring.client import Client
    from weft.authoring.context import Call, Context, context
    from weft.authoring.facts import Facts
    from weft.authoring.goals import Goal, Plan
    from weft.authoring.graphs import Graph, GraphNode
    from weft.authoring.group import Group
    from weft.authoring.handles import ChildHandle, Event, Handle
    from weft.authoring.limits import Limit
    from weft.authoring.mcp import mcp
    from weft.authoring.messages import Message
    from weft.authoring.needs import Const, Each, Fact, ale, lua
    from weft.authoring.policies import Duration, Retry
    from weft.authoring.resources import Resource
    from weft.authoring.results import Again, Answer, Done, Err, Ok, Turn, Winner, again, done
    from weft.authoring.schedules import Schedules
    from weft.authoring.start_rules import Batch, Debounce, Singleton
    from weft.authoring.steps import Step
    from weft.authoring.tools import person, tool
    from weft.authoring.workflows import Workflow
    from weft.core.findings import Finding
    from weft.core.run.hook_events import HookEvent, HookQuestion
    from weft.errors import (
        AlreadyDecided,
        BadDuration,
        BadGraph,
        BadHook,
        BadPatch,
        BadPlan,
        BadPolicy,
        BadResource,
        BadSchedule,
        BadValue,
        BranchesFailed,
        BudgetExceeded,
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
        ResourceFailed,
        Rollback,
        RunAtImport,
        RunCancelled,
        RunFailed,
        RunFinished,
        RunKept,
        RunOpen,
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
        UsedAfterFork,
        WeftError,
        WorkerLost,
        WrongSchema,
    )
    from weft.observe.explanation import Explanation
    from weft.observe.live_check import LiveGroup, LiveReport
    from weft.observe.step_logs import LogLine
    from weft.observe.usage import BudgetUsage, RunUsage, Spender, UnitUsage
    from weft.pipelines.faults import PipelineFailed
    from weft.runtime.bulk_plan import BulkResult, RefusedRuns
    from weft.runtime.schedules import AddedSchedule, NominalTime, Schedule
    from weft.steps.node_types import NodeType, register_node_type
    from weft.steps.secrets import Secret
    from weft.steps.signature import injected
    from weft.steps.task import Task, task

__all__ = [
    "AddedSchedule",
    "Again",
    "Agent",
    "AgentFailed",
    "AlreadyDecided",
    "Answer",
    "App",
    "BadDuration",
    "BadGraph",
    "BadHook",
    "BadPatch",
    "BadPlan",
    "BadPolicy",
    "BadResource",
    "BadSchedule",
    "BadValue",
    "Batch",
    "BlockingApp",
    "BlockingBulk",
    "BlockingClient",
    "BlockingHandle",
    "BlockingSchedules",
    "BlockingWorkflows",
    "BranchesFailed",
    "Budget",
    "BudgetExceeded",
    "BudgetUsage",
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
    "Debounce",
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
    "HookEvent",
    "HookQuestion",
    "IdTaken",
    "KeyReused",
    "Limit",
    "LimitExceeded",
    "LiveGroup",
    "LiveReport",
    "LogLine",
    "LoopRunning",
    "Message",
    "MissingExtra",
    "ModelFailed",
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
    "PipelineFailed",
    "Plan",
    "Prices",
    "Refused",
    "RefusedRuns",
    "Reply",
    "Resource",
    "ResourceFailed",
    "Retry",
    "Rollback",
    "RunAtImport",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "RunKept",
    "RunOpen",
    "RunUndone",
    "RunUnreadable",
    "RunUsage",
    "Schedule",
    "Schedules",
    "Secret",
    "Singleton",
    "Spender",
    "StaleBase",
    "Step",
    "StepFailed",
    "StepTimedOut",
    "StoreError",
    "Task",
    "TimedOut",
    "ToolCall",
    "Turn",
    "Unavailable",
    "UnitUsage",
    "UnknownStep",
    "UnknownWorkflow",
    "Usage",
    "UsageError",
    "UsedAfterFork",
    "WeftError",
    "Winner",
    "WorkerLost",
    "Workflow",
    "WrongSchema",
    "again",
    "ale",
    "context",
    "done",
    "injected",
    "lua",
    "mcp",
    "person",
    "register_node_type",
    "task",
    "tool",
]

if not TYPE_CHECKING:
    # Loaded at first use: `import weft` and `weft --help` must not pay for an engine that they do not start.
    _HOMES = (
        "errors",
        "steps.task",
        "agents.budget",
        "authoring.app",
        "authoring.blocking.app",
        "authoring.blocking.client",
        "authoring.blocking.handles",
        "authoring.bulk",
        "authoring.client",
        "authoring.context",
        "authoring.facts",
        "authoring.goals",
        "authoring.graphs",
        "authoring.group",
        "authoring.handles",
        "authoring.limits",
        "authoring.messages",
        "authoring.needs",
        "authoring.policies",
        "authoring.resources",
        "authoring.results",
        "authoring.schedules",
        "authoring.start_rules",
        "authoring.steps",
        "authoring.workflows",
        "core.findings",
        "core.run.hook_events",
        "observe.explanation",
        "observe.live_check",
        "observe.usage",
        "pipelines.faults",
        "steps.node_types",
        "steps.secrets",
        "steps.signature",
        "agents.models.failures",
        "agents.models.prices",
        "agents.failures",
        "authoring.tools",
        "authoring.mcp",
        "authoring.agents.reply",
        "authoring.agents.agent",
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
