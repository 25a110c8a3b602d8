"""Describe the diagnosis of a run in sentences, for the API and the command line."""

from __future__ import annotations

from datetime import datetime, timedelta

from weft.core.durations import format_ms
from weft.core.plurals import pluralize
from weft.core.run.lifecycle import NEVER_BEGAN, UNDONE
from weft.errors import Failure
from weft.observe.diagnosis import Diagnosis, PendingWait
from weft.observe.explanation import Explanation, Waiting
from weft.observe.run_hosts import Hosting
from weft.observe.styles import views_of

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
        path=style_sentences.path,
        skipped=style_sentences.skipped,
        joins=style_sentences.joins,
        style=diagnosis.style,
        progress=diagnosis.progress,
        diagnosis=diagnosis,
    )


def sections(explanation: Explanation) -> list[tuple[str, list[str]]]:
    """Return the lists of an explanation that are not empty, with their headings."""
    views = views_of(explanation.style)
    lists = [
        (views.joins_heading, explanation.joins),
        (views.path_heading, explanation.path),
        ("what did not run", explanation.skipped),
    ]
    return [(heading, lines) for heading, lines in lists if lines]


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


def idle_sentence(queue: str) -> str:
    """Explain why no worker performs a task: it waits in a queue or, without a queue, no process hosts its run."""
    return f"waits in the queue {queue}" if queue else NOT_HOSTED


def missing_sentence(workflow: str, version: str) -> str:
    """Name the version of a workflow that no host offers."""
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
    """Return the command that would help, or what is known about the wait."""
    hosted = diagnosis.is_hosted or diagnosis.is_offered
    by_itself = "it continues by itself" if hosted else "it continues when it is hosted"
    match wait.kind:
        case "step" if not wait.is_performed:
            return f"attempt {wait.attempt}, {idle_sentence(wait.queue)}"
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
    if diagnosis.starts_at is not None:
        return f"it starts at {diagnosis.starts_at:%Y-%m-%d %H:%M:%S}"
    if diagnosis.is_offered:
        return "no host has claimed it yet"
    if diagnosis.missing_version:
        return f"it waits for {missing_sentence(diagnosis.workflow, diagnosis.missing_version)}"
    return f'no host has claimed it: no running host offers "{diagnosis.workflow}"{_version(diagnosis)}'


def _version(diagnosis: Diagnosis) -> str:
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
    if diagnosis.is_offered:
        return f"A host that has {diagnosis.workflow}{_version(diagnosis)} will claim it."
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
