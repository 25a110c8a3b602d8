"""Sentences about a run, made from its diagnosis. The API and the command line show the same ones."""

from __future__ import annotations

from datetime import datetime, timedelta

from weft.core.durations import format_ms
from weft.core.plurals import pluralize
from weft.observe.diagnosis import Diagnosis, PendingWait
from weft.observe.explanation import Explanation, Waiting
from weft.observe.run_hosts import Hosting
from weft.observe.styles import views_of

NOT_HOSTED = "no process hosts it now"
CANCELLING_MS_MAX = 10_000
"""A run that is cancelling for longer probably has code that does not end."""
WAITS_SHOWN_MAX = 3


def explanation_of(diagnosis: Diagnosis) -> Explanation:
    """Say all that a diagnosis knows."""
    own = views_of(diagnosis.style).sentences(diagnosis)
    return Explanation(
        run=diagnosis.run,
        workflow=diagnosis.workflow,
        status=diagnosis.status,
        summary=_summary(diagnosis),
        waiting=[_waiting(wait, diagnosis) for wait in diagnosis.waits],
        steps_done=diagnosis.steps_done,
        hint="\n  ".join(filter(None, _hints(diagnosis))),
        path=own.path,
        skipped=own.skipped,
        joins=own.joins,
        style=diagnosis.style,
        progress=diagnosis.progress,
        diagnosis=diagnosis,
    )


def sections(explanation: Explanation) -> list[tuple[str, list[str]]]:
    """Return the lists of an explanation with their headings, without those that are empty."""
    views = views_of(explanation.style)
    found = [
        (views.joins_heading, explanation.joins),
        (views.path_heading, explanation.path),
        ("what did not run", explanation.skipped),
    ]
    return [(heading, lines) for heading, lines in found if lines]


# --- what it waits for -------------------------------------------------------------------------------------------


def wait_sentence(wait: PendingWait) -> str:
    """Say what a run waits for, in a few words."""
    match wait.kind:
        case "step":
            return f"step {wait.step}"
        case "retry":
            return f"attempt {wait.attempt} of {wait.attempts_max} of {wait.step}"
        case "sleep":
            return "time to pass"
        case "answer":
            return f"the answer of {wait.step}"
        case "join":
            return "the rest of what it joins"
        case "message":
            names = " or ".join(f'"{name}"' for name in wait.names)
            return f"a message {names or 'any name'}"
        case "ask":
            of = f" of {', '.join(wait.asked)}" if wait.asked else ""
            return f'an answer{of} to "{wait.title}"'
        case "child":
            return f"the run {wait.run} of {wait.workflow}"
        case "fact":
            return f"the optional {wait.fact}"


def idle_sentence(queue: str) -> str:
    """Say why nobody performs a task: it waits in a queue, or (no queue) no process hosts its run."""
    return f"waits in the queue {queue}" if queue else NOT_HOSTED


def missing_sentence(workflow: str, version: str) -> str:
    """Name the version of a workflow that no host offers."""
    return f"version {version} of {workflow}, which no host offers"


def unhosted_sentence(workflow: str, hosting: Hosting) -> str:
    """Say why a run does not go on if no host has it and none would take it up; else empty."""
    if hosting.is_hosted:
        return ""
    version = hosting.missing_version
    return f"it waits for {missing_sentence(workflow, version)}" if version else NOT_HOSTED


def host_advice(workflow: str, style: str, missing_version: str) -> str:
    """Say what helps a run that no host has and none would take up."""
    if not missing_version:
        return f"No process hosts {workflow} now. Run its program, or: weft serve app.py"
    return views_of(style).version_advice(missing_version)


def _waiting(wait: PendingWait, diagnosis: Diagnosis) -> Waiting:
    return Waiting(
        kind=wait.kind,
        location=wait.place,
        what=wait_sentence(wait),
        since=wait.since,
        until=wait.due,
        unblock=_unblock(wait, diagnosis),
    )


def _unblock(wait: PendingWait, diagnosis: Diagnosis) -> str:
    """Say what would help, or how far it is."""
    hosted = diagnosis.is_hosted or diagnosis.is_offered
    by_itself = "it goes on by itself" if hosted else "it goes on when it is hosted"
    match wait.kind:
        case "step" if not wait.is_performed:
            return f"attempt {wait.attempt}, {idle_sentence(wait.queue)}"
        case "step":
            limit = "" if wait.timeout_ms else "; it has no timeout"
            return f"attempt {wait.attempt}, out for {_length(wait.since, diagnosis.at)}{limit}"
        case "retry":
            failure = wait.failure
            return f"attempt {wait.attempt - 1} failed: {failure.type}: {failure.message}" if failure else ""
        case "sleep":
            return by_itself
        case "answer":
            return f"attempt {wait.attempt}, accepted; out for {_length(wait.since, diagnosis.at)}"
        case "join":
            return f"{by_itself}, at the latest when its time runs out"
        case "message":
            return f"weft send {diagnosis.run} {wait.names[0] if wait.names else 'NAME'} BODY"
        case "ask":
            return f"weft decide {diagnosis.run}:{wait.place} approve|reject"
        case "child":
            return f"weft explain {wait.run}"
        case "fact":
            return "then it goes on without"


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
        case "held" if hold is not None:
            return f"it stopped for you at {hold.place or 'its code'} ({hold.code})"
        case "paused":
            return f"{done}; it waits until somebody resumes it (weft resume {diagnosis.run})"
    if diagnosis.missing_version:
        return f"{done}; it waits for {missing_sentence(diagnosis.workflow, diagnosis.missing_version)}"
    if not waits:
        return f"{done}; it has something to do and is about to do it"
    more = " …" if len(waits) > WAITS_SHOWN_MAX else ""
    return f"{done}; it waits for {', '.join(wait_sentence(wait) for wait in waits[:WAITS_SHOWN_MAX])}{more}"


def _not_begun(diagnosis: Diagnosis) -> str:
    if diagnosis.is_hosted:
        return "a host has just taken it up"
    if diagnosis.starts_at is not None:
        return f"it starts at {diagnosis.starts_at:%Y-%m-%d %H:%M:%S}"
    if diagnosis.is_offered:
        return "no host has taken it up yet"
    if diagnosis.missing_version:
        return f"it waits for {missing_sentence(diagnosis.workflow, diagnosis.missing_version)}"
    return f'no host has taken it up: none that is running offers "{diagnosis.workflow}"{_version(diagnosis)}'


def _version(diagnosis: Diagnosis) -> str:
    return f" in version {diagnosis.version}" if diagnosis.version else ""


def _hints(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.has_begun:
        return [_start_hint(diagnosis)]
    if diagnosis.hold is not None:
        message = diagnosis.hold.message
        return [message, hold_hint(diagnosis.run, message, has_mail=diagnosis.has_mail)]
    return [_force_hint(diagnosis), _host_hint(diagnosis)]


def _start_hint(diagnosis: Diagnosis) -> str:
    if diagnosis.is_hosted or diagnosis.starts_at is not None:
        return ""
    if diagnosis.is_offered:
        return f"A host that has {diagnosis.workflow}{_version(diagnosis)} takes it up."
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
    """Say what helps if the code of a run has not ended for long after it was cancelled; else empty."""
    if cancelling_ms < CANCELLING_MS_MAX:
        return ""
    length = format_ms(cancelling_ms // 1000 * 1000)
    return f"Its code has not ended for {length}. End it without asking: weft cancel {run_id} --force"


def hold_hint(run_id: str, message: str, *, has_mail: bool = False) -> str:
    """Say how a run that stopped for a person goes on; empty if the message of the hold says it."""
    if has_mail:
        return "Something came for it meanwhile, such as a resume: it is seen when a process hosts the run."
    command = f"weft resume {run_id}"
    return "" if command in message else f"When the code is corrected: {command}"
