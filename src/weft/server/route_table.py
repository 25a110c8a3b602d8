"""All routes of the API."""

from __future__ import annotations

import msgspec

from weft.errors import (
    AlreadyDecided,
    NotAllowed,
    NotFound,
    NotRunning,
    Refused,
    RunFinished,
    RunUnreadable,
    UnknownWorkflow,
    UsageError,
)
from weft.server import views
from weft.server.approvals import approval
from weft.server.approvals.links import PATH
from weft.server.budget_routes import BUDGETS
from weft.server.bulk_routes import BULKS
from weft.server.bundle_routes import BUNDLES
from weft.server.endpoints import (
    approvals,
    dead_letters,
    health,
    links,
    live,
    node_types,
    pages,
    screens,
    step_logs,
    streams,
    tasks,
    webhooks,
)
from weft.server.endpoints.run_live import RunFrames
from weft.server.fork_routes import FORKS
from weft.server.goal_routes import GOALS
from weft.server.hand_routes import BY_HAND
from weft.server.identity import AccessScope
from weft.server.mcp_routes import MCP
from weft.server.operation_routes import OPERATIONS, SCREENS
from weft.server.patch_routes import PATCHES
from weft.server.policy_routes import POLICY
from weft.server.read_routes import READS
from weft.server.request import FORM_TYPE
from weft.server.retention_routes import RETENTION
from weft.server.router import API, ApiRoute
from weft.server.run_routes import COMMANDS, RUNS
from weft.server.schedule_routes import SCHEDULES
from weft.server.session_routes import SESSIONS
from weft.server.telemetry import MEDIA
from weft.server.tool_routes import TOOLS
from weft.server.view_routes import VIEWS
from weft.server.workflow_routes import WORKFLOWS

SSE = "text/event-stream"
HTML = "text/html; charset=utf-8"

DEFINITIONS = (
    ApiRoute(
        name="listNodeTypes",
        method="GET",
        path=f"{API}/node-types",
        summary="The node types that packages have added",
        endpoint=node_types.list_node_types,
        scope=AccessScope.READ,
        query=views.PageQuery,
        answer=views.NodeTypes,
        errors=(UsageError,),
    ),
)

PEOPLE = (
    ApiRoute(
        name="listApprovals",
        method="GET",
        path=f"{API}/approvals",
        summary="Open questions for people",
        endpoint=approvals.list_approvals,
        scope=AccessScope.READ,
        query=approval.ApprovalsQuery,
        answer=approval.ApprovalPage,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="getApproval",
        method="GET",
        path=f"{API}/approvals/{{id}}",
        summary="One question, open or decided, with the answers so far; its id is RUN:PLACE",
        endpoint=approvals.show_approval,
        scope=AccessScope.READ,
        answer=approval.ApprovalDetail,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="decide",
        method="POST",
        path=f"{API}/approvals/{{id}}/decision",
        summary="Answer a question; its id is RUN:PLACE",
        endpoint=approvals.decide,
        scope=AccessScope.DECIDE,
        body=views.Decision,
        answer=views.Accepted,
        errors=(NotFound, NotAllowed, AlreadyDecided, RunFinished, UsageError),
    ),
    ApiRoute(
        name="makeLinks",
        method="POST",
        path=f"{API}/approvals/{{id}}/links",
        summary="Make links by which one person approves or rejects; send them where only that person reads them",
        endpoint=links.make_links,
        scope=AccessScope.ADMIN,
        body=links.NewLinks,
        answer=views.LinkPair,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="showLink",
        method="GET",
        path=f"{PATH}/{{token}}",
        summary="The page behind a link: what it would decide",
        endpoint=links.show_link,
        scope=None,
        statuses=(200, 404, 409, 410),
        errors=(NotRunning,),
        kind="file",
        media=HTML,
    ),
    ApiRoute(
        name="followLink",
        method="POST",
        path=f"{PATH}/{{token}}",
        summary="Answer a question by its link",
        endpoint=links.follow_link,
        scope=None,
        body=links.LinkAnswer,
        takes=FORM_TYPE,
        statuses=(200, 403, 404, 409, 410, 422),
        errors=(NotRunning,),
        kind="file",
        media=HTML,
    ),
    ApiRoute(
        name="listDeadLetters",
        method="GET",
        path=f"{API}/dlq",
        summary="Work that failed for good and that no error route handled",
        endpoint=dead_letters.list_dead_letters,
        scope=AccessScope.READ,
        query=views.LettersQuery,
        answer=views.Letters,
        errors=(UsageError, UnknownWorkflow),
    ),
    ApiRoute(
        name="requeueDeadLetter",
        method="POST",
        path=f"{API}/dlq/{{id}}/requeue",
        summary="Requeue a dead letter; its id is RUN:TOKEN",
        endpoint=dead_letters.requeue,
        scope=AccessScope.OPERATE,
        body=views.Nothing,
        answer=views.Accepted,
        errors=(NotFound, Refused, UsageError, UnknownWorkflow),
    ),
    ApiRoute(
        name="discardDeadLetter",
        method="POST",
        path=f"{API}/dlq/{{id}}/discard",
        summary="Discard a dead letter",
        endpoint=dead_letters.discard,
        scope=AccessScope.OPERATE,
        body=views.Nothing,
        answer=views.Accepted,
        errors=(NotFound, Refused, UsageError, UnknownWorkflow),
    ),
)

TASKS = (
    ApiRoute(
        name="claimTasks",
        method="POST",
        path=f"{API}/tasks/claim",
        summary="Claim tasks whose step no host has, waiting for some if asked to",
        endpoint=tasks.claim,
        scope=AccessScope.WORK,
        operator_only=True,
        body=views.NewClaim,
        answer=views.Claimed,
        errors=(UsageError,),
        kind="wait",
    ),
    ApiRoute(
        name="keepTask",
        method="POST",
        path=f"{API}/tasks/{{id}}/heartbeat",
        summary="Renew a claim: its tasks are kept for another lease",
        endpoint=tasks.heartbeat,
        scope=AccessScope.WORK,
        operator_only=True,
        body=views.Nothing,
        answer=views.Beat,
        errors=(NotFound, Refused),
    ),
    ApiRoute(
        name="emitOutput",
        method="POST",
        path=f"{API}/tasks/{{id}}/emit",
        summary="Write to an output stream of the run while the task is running",
        endpoint=tasks.emit,
        scope=AccessScope.WORK,
        operator_only=True,
        body=views.TaskChunks,
        answer=views.Beat,
        errors=(NotFound, Refused, UsageError),
    ),
    ApiRoute(
        name="completeTask",
        method="POST",
        path=f"{API}/tasks/{{id}}/complete",
        summary="Complete a task",
        endpoint=tasks.complete_task,
        scope=AccessScope.WORK,
        operator_only=True,
        body=views.TaskOutput,
        answer=views.Settled,
        errors=(NotFound, Refused, UsageError),
    ),
    ApiRoute(
        name="failTask",
        method="POST",
        path=f"{API}/tasks/{{id}}/fail",
        summary="Fail an attempt; the policy of the step says whether it is retried",
        endpoint=tasks.fail_task,
        scope=AccessScope.WORK,
        operator_only=True,
        body=views.TaskFailure,
        answer=views.Settled,
        errors=(NotFound, Refused, UsageError),
    ),
    ApiRoute(
        name="takeWebhook",
        method="POST",
        path=f"{API}/webhooks/{{token}}",
        summary="The answer of an HTTP step that answers later, signed with the key that came with the call, or ?key=",
        endpoint=webhooks.take,
        scope=None,
        query=webhooks.WebhookQuery,
        body=msgspec.Raw,
        answer=views.Nothing,
        errors=(NotFound, NotRunning),
    ),
)

LIVE = (
    ApiRoute(
        name="followAll",
        method="GET",
        path=f"{API}/live",
        summary="The commits of this host as they happen; also a WebSocket",
        endpoint=live.follow_all,
        scope=AccessScope.READ,
        query=views.LiveQuery,
        kind="live",
        media=SSE,
    ),
    ApiRoute(
        name="followRun",
        method="GET",
        path=f"{API}/runs/{{id}}/live",
        summary="The log of a run as it grows, until the run is over; also a WebSocket",
        endpoint=live.follow_run,
        scope=AccessScope.READ,
        query=views.FollowRunQuery,
        answer=RunFrames,
        errors=(NotFound,),
        statuses=(200, 204),
        kind="live",
        media=SSE,
    ),
    ApiRoute(
        name="listLogs",
        method="GET",
        path=f"{API}/runs/{{id}}/logs",
        summary="What the steps of a run printed and logged",
        endpoint=step_logs.list_logs,
        scope=AccessScope.READ,
        query=step_logs.LogsQuery,
        answer=step_logs.LogLines,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="followLogs",
        method="GET",
        path=f"{API}/runs/{{id}}/logs/live",
        summary="What the steps of a run print, until the run is over; also a WebSocket",
        endpoint=step_logs.follow_logs,
        scope=AccessScope.READ,
        query=views.FollowQuery,
        errors=(NotFound,),
        statuses=(200, 204),
        kind="live",
        media=SSE,
    ),
    ApiRoute(
        name="listStreams",
        method="GET",
        path=f"{API}/runs/{{id}}/streams",
        summary="The output streams of a run",
        endpoint=streams.list_streams,
        scope=AccessScope.READ,
        answer=views.StreamLengths,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="readStream",
        method="GET",
        path=f"{API}/runs/{{id}}/streams/{{stream}}",
        summary="A page of an output stream",
        endpoint=streams.read_stream,
        scope=AccessScope.READ,
        query=views.ChunksQuery,
        answer=views.Chunks,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="followStream",
        method="GET",
        path=f"{API}/runs/{{id}}/streams/{{stream}}/live",
        summary="An output stream as it grows, until the run is over; also a WebSocket",
        endpoint=live.follow_stream,
        scope=AccessScope.READ,
        query=views.FollowQuery,
        errors=(NotFound,),
        statuses=(200, 204),
        kind="live",
        media=SSE,
    ),
)

ABOUT = (
    ApiRoute(
        name="alive",
        method="GET",
        path="/healthz",
        summary="The process answers, and its host has not failed",
        endpoint=health.alive,
        scope=None,
        answer=views.Health,
        kind="health",
        statuses=(200, 503),
    ),
    ApiRoute(
        name="ready",
        method="GET",
        path="/readyz",
        summary="Runs can be started and continue",
        endpoint=health.ready,
        scope=None,
        answer=views.Readiness,
        kind="health",
        statuses=(200, 503),
    ),
    ApiRoute(
        name="metrics",
        method="GET",
        path="/metrics",
        summary="Metrics for Prometheus",
        endpoint=health.metrics,
        scope=AccessScope.READ,
        operator_only=True,
        kind="file",
        media=MEDIA,
    ),
    ApiRoute(
        name="openapi",
        method="GET",
        path="/openapi.json",
        summary="This document",
        endpoint=pages.openapi,
        scope=None,
        answer=dict,
        kind="answer",
    ),
    ApiRoute(
        name="home",
        method="GET",
        path="/",
        summary="The web UI for browsers, a short text for programs",
        endpoint=screens.home,
        scope=None,
        any_query=True,
        kind="file",
        media=screens.TEXT,
    ),
)

ROUTES: tuple[ApiRoute, ...] = (
    *RUNS,
    *VIEWS,
    *SESSIONS,
    *COMMANDS,
    *BULKS,
    *BUNDLES,
    *WORKFLOWS,
    *PATCHES,
    *BY_HAND,
    *BUDGETS,
    *DEFINITIONS,
    *GOALS,
    *PEOPLE,
    *SCHEDULES,
    *POLICY,
    *TOOLS,
    *RETENTION,
    *OPERATIONS,
    *READS,
    *SCREENS,
    *FORKS,
    *TASKS,
    *MCP,
    *LIVE,
    *ABOUT,
)
