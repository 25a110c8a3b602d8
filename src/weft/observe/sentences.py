"""Describe the diagnosis of a run in sentences, for the API and the command line."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from weft.core.durations import format_ms
from weft.core.plurals import pluralize
from weft.core.run.lifecycle import NEVER_BEGAN, UNDONE
from weft.errors import Failure
from weft.observe.boxes import box_at
from weft.observe.diagnosis import Diagnosis, IdleTask, PendingWait, StartWait
from weft.observe.explained_actions import run_action, wait_action
from weft.observe.explanation import ExplainedSection, Explanation, StyleSentences, Waiting
from weft.observe.run_hosts import Hosting
from weft.observe.style_views import StyleViews
from weft.observe.styles import views_of
from weft.runtime.hooks import WORKFLOW as HOOK

NOT_HOSTED = "no process hosts it now"
CANCELLING_MS_MAX = 10_000
"""After this time, the code of a cancelled run probably does not end by itself."""
WAITS_SHOWN_MAX = 3


def explanation_of(diagnosis: Diagnosis) -> Explanation:
    """Describe a diagnosis in sentences."""
    style_sentences = views_of(diagnosis.style).sentences(diagnosis)
    return Explanation(
        run=diagnosis.run,
        workflow=diagnosis.workflow,
        status=diagnosis.status,
        summary=_summary(diagnosis),
        waiting=[_waiting(wait, diagnosis) for wait in diagnosis.waits],
        steps_done=diagnosis.steps_done,
        hint="\n  ".join(filter(None, _hints(diagnosis))),
        path=[line.text for line in style_sentences.path],
        skipped=[line.text for line in style_sentences.skipped],
        joins=[line.text for line in style_sentences.joins],
        sections=_sections(views_of(diagnosis.style), style_sentences),
        action=run_action(diagnosis),
        style=diagnosis.style,
        progress=diagnosis.progress,
        diagnosis=diagnosis,
    )


def _sections(views: StyleViews[Any], sentences: StyleSentences) -> list[ExplainedSection]:
    """Return the lists of sentences that are not empty, with their headings."""
    found = [
        ExplainedSection(name="joins", heading=views.joins_heading, lines=sentences.joins),
        ExplainedSection(name="path", heading=views.path_heading, lines=sentences.path),
        ExplainedSection(name="skipped", heading="what did not run", lines=sentences.skipped),
    ]
    return [section for section in found if section.lines]


# --- what it waits for -------------------------------------------------------------------------------------------


def wait_sentence(wait: PendingWait) -> str:
    """Describe a wait in a few words."""
    match wait.kind:
        case "step":
            return f"step {wait.step}"
        case "retry":
            return f"attempt {wait.attempt} of {wait.attempts_max} of {wait.step}"
        case "sleep":
            return "a timer"
        case "answer":
            return f"the answer of {wait.step}"
        case "join":
            return "more branches of its join"
        case "message":
            names = " or ".join(f'"{name}"' for name in wait.names)
            return f"a message {names or 'with any name'}"
        case "ask":
            of = f" of {', '.join(wait.asked)}" if wait.asked else ""
            return f'an answer{of} to "{wait.title}"'
        case "child":
            return f"the run {wait.run} of {wait.workflow}"
        case "fact":
            return f"the optional {wait.fact}"
        case "patch":
            by = f" of {wait.asked[0]}" if wait.asked else ""
            where = f", when all tokens are at {wait.names[0]}" if wait.names else ""
            return f"a place where the patch{by} is allowed{where}"


def idle_sentence(task: IdleTask) -> str:
    """Explain why no worker performs a task: a limit or a queue holds it back, or no process hosts its run."""
    standing = f": {task.standing}" if task.standing else ""
    if task.limit:
        key = f" for the key {task.key!r}" if task.key else ""
        return f"waits for its turn: {task.limit} has a limit{key}{standing} (weft queue)"
    return f"waits in the queue {task.queue}{standing}" if task.queue else NOT_HOSTED


def missing_sentence(workflow: str, version: str) -> str:
    """Name the version of a workflow that no host offers."""
    if workflow == HOOK:
        return "the step of its hook, which no host has"
    return f"version {version} of {workflow}, which no host offers"


def unhosted_sentence(workflow: str, hosting: Hosting) -> str:
    """Explain why a run makes no progress if no host has it or offers its workflow; empty otherwise."""
    if hosting.is_hosted:
        return ""
    version = hosting.missing_version
    return f"it waits for {missing_sentence(workflow, version)}" if version else NOT_HOSTED


def host_advice(workflow: str, style: str, missing_version: str) -> str:
    """Return advice for a run that no host has or offers."""
    if not missing_version:
        return f"No process hosts {workflow} now. Run its program, or: weft serve app.py"
    if workflow == HOOK:
        return "The hook is not in the code of any host. Declare it again, or give the delivery up: weft cancel RUN"
    return views_of(style).version_advice(missing_version)


def _waiting(wait: PendingWait, diagnosis: Diagnosis) -> Waiting:
    return Waiting(
        kind=wait.kind,
        location=wait.place,
        what=wait_sentence(wait),
        since=wait.since,
        until=wait.due,
        unblock=_unblock(wait, diagnosis),
        box=box_at(diagnosis.style, wait.place),
        number=wait.number,
        action=wait_action(wait, diagnosis),
    )


def _unblock(wait: PendingWait, diagnosis: Diagnosis) -> str:
    """Return the command that would help, or what is known about the wait."""
    hosted = diagnosis.is_hosted or diagnosis.is_offered
    by_itself = "it continues by itself" if hosted else "it continues when it is hosted"
    match wait.kind:
        case "step" if not wait.is_performed:
            task = IdleTask(queue=wait.queue, limit=wait.limit, key=wait.key, standing=wait.standing)
            return f"attempt {wait.attempt}, {idle_sentence(task)}"
        case "step":
            limit = "" if wait.timeout_ms else "; it has no timeout"
            return f"attempt {wait.attempt}, running for {_length(wait.since, diagnosis.at)}{limit}"
        case "retry":
            failure = wait.failure
            return f"attempt {wait.attempt - 1} failed: {failure.type}: {failure.message}" if failure else ""
        case "sleep":
            return by_itself
        case "answer":
            return f"attempt {wait.attempt}, accepted {_length(wait.since, diagnosis.at)} ago"
        case "join":
            return f"{by_itself}, at the latest at its timeout"
        case "message":
            return f"weft send {diagnosis.run} {wait.names[0] if wait.names else 'NAME'} BODY"
        case "ask":
            return f"weft decide {diagnosis.run}:{wait.place} approve|reject"
        case "child":
            return f"weft explain {wait.run}"
        case "fact":
            return "it continues without the fact after the deadline"
        case "patch":
            return f"it is tried after every event; to drop it: weft patch {diagnosis.run} --withdraw {wait.number}"


def _length(since: datetime, now: datetime) -> str:
    return format_ms(max(0, _ms(now - since)))


def _ms(length: timedelta) -> int:
    return round(length / timedelta(milliseconds=1))


# --- the run as a whole ------------------------------------------------------------------------------------------


def _summary(diagnosis: Diagnosis) -> str:
    if not diagnosis.has_begun:
        return _not_begun(diagnosis)
    done = f"{pluralize(diagnosis.steps_done, 'step')} recorded"
    failure, hold, waits = diagnosis.failure, diagnosis.hold, diagnosis.waits
    match diagnosis.status:
        case "completed":
            return f"{done}, nothing is left to do"
        case "failed":
            return f"{failure.type}: {failure.message}" if failure is not None else "it failed"
        case "cancelled":
            return f"it was cancelled{f' ({diagnosis.cancel_reason})' if diagnosis.cancel_reason else ''}"
        case "moved":
            where = f" to {diagnosis.moved_to}" if diagnosis.moved_to else ""
            return f"it was moved{where}; another store goes on with it"
        case "held" if hold is not None:
            return f"it stopped for you at {hold.place or 'its code'} ({hold.code})"
        case "paused":
            return f"{done}; it is paused until it is resumed (weft resume {diagnosis.run})"
    if diagnosis.missing_version:
        return f"{done}; it waits for {missing_sentence(diagnosis.workflow, diagnosis.missing_version)}"
    if not waits:
        return f"{done}; it is about to continue"
    more = " …" if len(waits) > WAITS_SHOWN_MAX else ""
    return f"{done}; it waits for {', '.join(wait_sentence(wait) for wait in waits[:WAITS_SHOWN_MAX])}{more}"


def _not_begun(diagnosis: Diagnosis) -> str:
    if diagnosis.is_hosted:
        return "a host has just claimed it"
    if diagnosis.start_wait is not None:
        return _start_sentence(diagnosis.start_wait, diagnosis.starts_at)
    if diagnosis.starts_at is not None:
        return f"it starts at {diagnosis.starts_at:%Y-%m-%d %H:%M:%S UTC}"
    if diagnosis.is_offered:
        return "no host has claimed it yet"
    if diagnosis.missing_version:
        return f"it waits for {missing_sentence(diagnosis.workflow, diagnosis.missing_version)}"
    return f'no host has claimed it: no running host offers "{diagnosis.workflow}"{_in_version(diagnosis)}'


def _start_sentence(wait: StartWait, starts_at: datetime | None) -> str:
    """Say why a run that has not begun waits, by the rule of its workflow about starts."""
    key = f" with the key {wait.key!r}" if wait.key else ""
    when = f"{starts_at:%Y-%m-%d %H:%M:%S UTC}" if starts_at is not None else "once"
    match wait.kind:
        case "singleton":
            return f"it waits until {wait.behind}, which it replaces, has ended"
        case "limit":
            return f"it waits for the limit of its workflow{f': {wait.standing}' if wait.standing else ''}"
        case "batch":
            full = f" of {wait.size}" if wait.size else ""
            return f"it collects inputs{key} ({wait.inputs}{full} so far), and starts at {when} or when it is full"
    latest = f", at the latest at {wait.latest:%Y-%m-%d %H:%M:%S UTC}" if wait.latest is not None else ""
    return f"it starts at {when} with the newest input, unless there is another start{key} until then{latest}"


def start_words(wait: StartWait | None, starts_at: datetime | None) -> str:
    """Say in a few words what a run that has not begun waits for; empty if it only waits for a host."""
    when = f"{starts_at:%Y-%m-%d %H:%M:%S UTC}" if starts_at is not None else ""
    if wait is None:
        return f"its start at {when}" if when else ""
    match wait.kind:
        case "singleton":
            return f"the end of {wait.behind}"
        case "limit":
            return "the limit of its workflow"
        case "batch":
            return f"more inputs, until {when}"
        case "debounce":
            return f"quiet, until {when}"


def _in_version(diagnosis: Diagnosis) -> str:
    return f" in version {diagnosis.version}" if diagnosis.version else ""


def _hints(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.has_begun:
        return [_start_hint(diagnosis)]
    if diagnosis.hold is not None:
        message = diagnosis.hold.message
        return [message, hold_hint(diagnosis.run, message, has_mail=diagnosis.has_mail)]
    if diagnosis.status == "failed":
        advice = failure_advice(diagnosis.run, diagnosis.workflow, diagnosis.failure)
        return [advice, f"What it did, and the traceback: weft show {diagnosis.run}"]
    return [_force_hint(diagnosis), _host_hint(diagnosis)]


def failure_advice(run_id: str, workflow: str, failure: Failure | None) -> str:
    """Return advice on how to continue after a failure. A run that never began or was undone cannot be retried."""
    notes = failure.attributes if failure is not None else {}
    new_run = f"Start a new run with another id: weft start {workflow} --input FILE"
    if notes.get(NEVER_BEGAN) == run_id:
        return f"It never began. {new_run}"
    if notes.get(UNDONE) == run_id:
        return f"Its steps were undone. {new_run}"
    return f"Try again: weft retry {run_id}"


def _start_hint(diagnosis: Diagnosis) -> str:
    if diagnosis.is_hosted or diagnosis.starts_at is not None:
        return ""
    if diagnosis.start_wait is not None and diagnosis.start_wait.kind == "limit":
        return "To see the keys of the limit: weft queue"
    if diagnosis.start_wait is not None:
        return f"To see what it waits for: weft explain {diagnosis.start_wait.behind}"
    if diagnosis.is_offered:
        return f"A host that has {diagnosis.workflow}{_in_version(diagnosis)} will claim it."
    advice = "Run its program, or: weft serve app.py."
    if diagnosis.missing_version:
        advice = host_advice(diagnosis.workflow, diagnosis.style, diagnosis.missing_version)
    return f"{advice} To stop waiting: weft cancel {diagnosis.run}"


def _host_hint(diagnosis: Diagnosis) -> str:
    if diagnosis.is_over or diagnosis.is_hosted or diagnosis.is_offered or diagnosis.status in ("paused", "held"):
        return ""
    return host_advice(diagnosis.workflow, diagnosis.style, diagnosis.missing_version)


def _force_hint(diagnosis: Diagnosis) -> str:
    if diagnosis.status != "cancelling" or diagnosis.cancelled_at is None:
        return ""
    return force_hint(diagnosis.run, _ms(diagnosis.at - diagnosis.cancelled_at))


def force_hint(run_id: str, cancelling_ms: int) -> str:
    """Return advice if the code of a run has not ended long after it was cancelled; empty otherwise."""
    if cancelling_ms < CANCELLING_MS_MAX:
        return ""
    length = format_ms(cancelling_ms // 1000 * 1000)
    return f"Its code has not ended for {length}. To end the run without its code: weft cancel {run_id} --force"


def hold_hint(run_id: str, message: str, *, has_mail: bool = False) -> str:
    """Explain how to continue a held run; empty if the message of the hold says what to do."""
    if has_mail:
        return "The run has new mail, such as a resume. It takes effect when a process hosts the run."
    command = f"weft resume {run_id}"
    return "" if command in message or "weft fork " in message else f"When the code is corrected: {command}"
