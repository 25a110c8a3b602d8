"""Describe the events of a log in sentences, for the terminal and for screens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from weft.core import events as e
from weft.core.plurals import pluralize
from weft.core.unfold import ViewEvent
from weft.errors import Failure
from weft.observe.event_parts import EventPart

TEXT_CHARS_MAX = 300


def event_text(part: EventPart, location: str) -> str:
    """Return what happened in one line. ``location`` is that of the operation that the event is about, if any."""
    event = part.event
    text = _of_place(event, location) or _of_graph(event) or _of_goal(event) or _of_run(event) or _of_schedule(event)
    if not text:
        kind, _ = part.split()
        text = f"{location}: {_words(kind)}" if location else _words(kind)
    return text.partition("\n")[0][:TEXT_CHARS_MAX]


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def failure_line(failure: Failure) -> str:
    """Return the type and the message of a failure in one line."""
    message = failure.message.partition("\n")[0].rstrip(". ")
    return f"{failure.type}: {message}" if message else failure.type


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _until_text(due: int) -> str:
    return f", until {_time(due)}" if due else ""


def _who_and_why(event: Any) -> str:
    """Say who did it, and why, as far as somebody said so."""
    by, reason = getattr(event, "by", ""), getattr(event, "reason", "")
    return f"{f' by {by}' if by else ''}{f': {reason}' if reason else ''}"


def _of_place(event: ViewEvent, at: str) -> str:
    """Describe work, waits and answers at a location."""
    match event:
        case e.TaskScheduled(node=node, token="") if node == at and node:
            return f"{at} began its work"  # a goal run says before that the step started
        case e.TaskScheduled(step=step):
            return f"{at} started{f', step {step}' if step != at else ''}"
        case e.TaskSucceeded(attempt=attempt, copied=copied):
            what = "got a result from elsewhere" if copied else "succeeded"
            return f"{at} {what}{f', attempt {attempt}' if attempt > 1 else ''}"
        case e.TaskFailed(failure=failure, attempt=attempt, retry_at=retry_at):
            again = f"; again at {_time(retry_at)}" if retry_at else ", for good"
            return f"{at} failed, attempt {attempt}: {failure_line(failure)}{again}"
        case e.TaskLost(retry_at=retry_at):
            return f"{at} was lost with its worker{f'; again at {_time(retry_at)}' if retry_at else ''}"
        case e.UndoScheduled(step=step):
            return f"{at.removesuffix('!undo')} is being undone, step {step}"
        case e.TimerSet(due=due):
            return f"{at} sleeps until {_time(due)}"
        case e.TimerFired():
            return f"{at} woke up" if at else "a timer fired"
        case e.MessageAwaited(names=names, due=due):
            return f"{at} waits for a message {' or '.join(names) or 'with any name'}{_until_text(due)}"
        case e.MessagesTaken(ids=ids):
            return f"{at} took {pluralize(len(ids), 'message')}"
        case e.MessageRefused(error=error):
            return f"{at} refused a message: {error}"
        case e.WaitTimedOut():
            return f"{at} waited in vain for a message"
        case e.AskOpened(title=title, due=due):
            return f'{at} asks "{title}"{_until_text(due)}'
        case e.AskAnswered(approved=approved):
            return f"{at} was {'approved' if approved else 'rejected'}{_who_and_why(event)}"
        case e.ChildStarted(run_id=run_id, workflow=workflow):
            return f"{at} started the run {run_id} of {workflow}"
        case e.ChildEnded(status=status, failure=failure):
            return f"{at}: its run {status}{f': {failure_line(failure)}' if failure is not None else ''}"
        case e.EntryCancelled():
            return f"{at} was cancelled"
    return _of_code(event, at)


def _of_code(event: ViewEvent, at: str) -> str:
    match event:
        case e.ValueRecorded(of="map", value=value):
            return f"{at} maps {bytes(value).decode()} items"
        case e.ValueRecorded(of=of):
            return f"{at} recorded {of}"
        case e.RaceDecided(winner=winner):
            return f"{at} was won by {winner}"
        case e.LoopTurned(round=round):
            return f"{at} began round {round}"
        case e.LoopFinished(rounds=rounds):
            return f"{at} ended after {pluralize(rounds, 'round')}"
        case e.AttributesSet(attributes=attributes):
            return f"set {', '.join(attributes)}"
        case e.ResultSet():
            return f"the result of {at or 'a place'} was set{_who_and_why(event)}"
    return ""


def _of_graph(event: ViewEvent) -> str:
    match event:
        case e.NodeRouted(node=node, taken=taken, caught=caught):
            source = node or "the start"
            ends = ", ".join(one.edge.partition(">")[2].partition("#")[0] for one in taken)
            return f"{source}{' failed' if caught else ''} → {ends}" if ends else f"{source} ended here"
        case e.NodeFailed(node=node, failure=failure):
            return f"{node} failed: {failure_line(failure)}"
        case e.FailureRaised(node=node, failure=failure):
            return f"no edge of {node} handled its failure: {failure_line(failure)}"
        case e.LetterDiscarded():
            return f"a dead letter was discarded{_who_and_why(event)}"
    return ""


def _of_goal(event: ViewEvent) -> str:
    match event:
        case e.GoalPlanned():
            return "the run was planned"
        case e.FactsGiven(values=values):
            return f"given: {', '.join(values) or 'nothing'}"
        case e.StepStarted(step=step, work_items=items, fan_out=fan_out):
            return f"{step} started with {pluralize(items, 'item')}" if fan_out else f"{step} started"
        case e.StepCompleted(step=step):
            return f"{step} completed"
        case e.AttributeSet(name=name, provider=provider):
            return f"{provider or 'the caller'} gave {name}"
        case e.StepFailedEvent(step=step, failure=failure):
            return f"{step} failed: {failure_line(failure)}"
        case e.StepSkipped(step=step, reason=reason):
            return f"{step} was skipped: {reason}"
        case e.WorkSkipped(step=step, item=item):
            return f"{step}/{item} was skipped: its predicate returned false"
        case e.DeadlineSet(step=step, name=name, due=due):
            return f"{step} waits for the optional {name}{_until_text(due)}"
        case e.DeadlinePassed(step=step, name=name):
            return f"{step} goes on without {name}"
    return ""


def _of_run(event: ViewEvent) -> str:
    match event:
        case e.RunStarted(workflow=workflow, version=version):
            return f"the run of {workflow} started{f', version {version}' if version else ''}"
        case e.RunCompleted():
            return "the run completed"
        case e.RunFailedEvent(failure=failure):
            return f"the run failed: {failure_line(failure)}"
        case e.RunCancelledEvent(reason=reason):
            return f"the run was cancelled{f': {reason}' if reason else ''}"
        case e.CancelRequested():
            return f"a cancel was requested{_who_and_why(event)}"
        case e.RunTimedOut():
            return "the run has used up its time"
        case e.RunEnding(failure=failure):
            return f"the run is ending{f': {failure_line(failure)}' if failure is not None else ''}"
        case e.RunPaused():
            return f"the run was paused{_who_and_why(event)}"
        case e.RunResumed():
            return f"the run was resumed{_who_and_why(event)}"
        case e.RunHeld(location=location, message=message):
            return f"the run is held{f' at {location}' if location else ''}: {message}"
        case e.RunRetried():
            return f"the run was retried{_who_and_why(event)}"
        case e.RunMoved(to=to):
            return f"the run was moved{f' to {to}' if to else ''}{_who_and_why(event)}"
        case e.RunAdopted():
            return f"the run was adopted{_who_and_why(event)}"
        case e.MessageReceived(name=name, sender=sender):
            return f"the message {name} arrived{f' from {sender}' if sender else ''}"
    return _of_changes(event)


def _of_changes(event: ViewEvent) -> str:
    match event:
        case e.RunPatched(rev=rev, undoes=undoes):
            what = f"patch {undoes} was undone" if undoes else f"patch {rev} was applied"
            return f"{what}{_who_and_why(event)}"
        case e.PatchAsked():
            return f"a patch waits{_who_and_why(event)}"
        case e.PatchDropped():
            return f"a patch was dropped{_who_and_why(event)}"
        case e.RunForked():
            return f"the fork goes on from here{_who_and_why(event)}"
        case e.RunEdited():
            return f"the fork was edited{_who_and_why(event)}"
    return ""


def _of_schedule(event: ViewEvent) -> str:
    match event:
        case e.ScheduleDeclared():
            return f"the schedule was declared{_who_and_why(event)}"
        case e.ScheduleFired(run_id=run_id, nominal=nominal):
            return f"started {run_id} for {_time(nominal)}{_who_and_why(event)}"
        case e.ScheduleQueued(run_id=run_id):
            return f"{run_id} will start when the runs before it have ended{_who_and_why(event)}"
        case e.ScheduleMissed(count=count, why=why):
            return f"{pluralize(count, 'time')} missed: {_words(why)}"
        case e.ScheduledRunFound(run_id=run_id):
            return f"{run_id} had been started already"
        case e.ScheduledRunEnded(status=status):
            return f"its run {status}"
    return ""
