"""The fast path of a code run: a task succeeds, and the code schedules the next one.

Nearly every step of every run takes this path, so each function decides, evolves and derives the effect in one call.
When a run is loaded, ``fold_event`` applies the same two events. In any other case, a function changes nothing, and the
tables are used. The tables are the reference, and ``tests/core/test_plain.py`` compares both.
"""

from __future__ import annotations

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.asks import path_of_ask
from weft.core.code.locations import readable_path
from weft.core.code.state import Entry
from weft.core.code.style import CodeStyle
from weft.core.effects import PerformTask
from weft.core.ids import EntryId
from weft.core.run.state import OpenTask

Scheduled = tuple[e.TaskScheduled, Entry, PerformTask]
"""The event of a task that was just recorded, its entry and its effect. Plain, because every step makes one."""


def take_success(style: CodeStyle, report: c.ReportTaskSucceeded, at: int) -> e.TaskSucceeded | None:
    """Record the success of a task, if the delivery is current and nothing else depends on the end of the task."""
    state = style.state
    number = report.task
    task, entry = state.tasks.get(number), state.entries.get(number)
    if task is None or entry is None or entry.status != "open":
        return None
    if task.attempt != report.attempt or task.delivery != report.delivery:
        return None
    if task.undo is not None or task.undo_of or task.policy.deadline_ms:
        return None
    if state.reversals or state.gone or state.gone_children or state.accounted or report.spent is not None:
        return None  # the tables handle work that was dropped or removed
    state.seq += 1
    state.at = at
    del state.tasks[number]
    state.steps_done += 1
    entry.status = "done"
    entry.output = report.output
    state.facts.append(number)
    return e.TaskSucceeded(task=number, output=report.output, attempt=report.attempt)


def schedule_task(style: CodeStyle, ask: c.ScheduleTask, at: int) -> Scheduled | None:
    """Schedule a task, in the common case."""
    state, index = style.state, style.index
    policy = ask.policy
    if ask.inline or ask.early or policy.deadline_ms or state.queue or ask.cover is not None or state.accounted:
        return None
    if state.renewed or state.earlier or state.reversals or state.gone or state.gone_children or state.fork is not None:
        return None
    add: list[str] = []
    n = ask.n
    base, name = index.paths.get(ask.scope), index.name_ids.get(ask.name)
    if base is not None and name is not None:  # path_of, without a call
        path: e.Path = [*base, name] if n == 1 else [*base, name, -n]
    else:
        path = path_of_ask(index, ask, add)
        if add:
            index.register(add)
    key = f"{ask.scope}{ask.name}#{n}" if n > 1 else ask.scope + ask.name  # key_of: a call for every step
    number = state.seq = state.seq + 1
    state.at = at
    state.tasks[number] = OpenTask(ask.step, ask.input, at, policy, undo=ask.undo)
    entry = state.entries[number] = Entry(
        EntryId(number), key, "step", digest=ask.digest, optional=policy.effect == "pure"
    )
    if policy.effect == "irreversible":
        entry.once = ask.step
    index.add(entry)
    return (
        e.TaskScheduled(
            step=ask.step,
            input=ask.input,
            at=path,
            add=add,
            digest=ask.digest,
            policy=policy,
            undo=ask.undo,
        ),
        entry,
        PerformTask(EntryId(number), 1, 1, ask.step, ask.input, f"{state.uid}/{key}", key, policy),
    )


def fold_event(style: CodeStyle, event: e.AnyEvent, at: int) -> bool:
    """Apply an event of a plain step from the log. Returns False, changing nothing, if it is any other event."""
    state = style.state
    if state.gone or state.gone_children or state.reversals or state.earlier or state.spends or state.fork is not None:
        return False
    if type(event) is e.TaskScheduled:
        if event.again is not None or event.cover is not None or event.inline or event.early:
            return False
        index, policy = style.index, event.policy
        if event.add:
            index.register(event.add)
        number = state.seq = state.seq + 1
        state.tasks[number] = OpenTask(event.step, event.input, at, policy, undo=event.undo)
        key = readable_path(event.at, state.names)
        entry = state.entries[number] = Entry(
            EntryId(number), key, "step", digest=event.digest, optional=policy.effect == "pure"
        )
        if policy.effect == "irreversible":
            entry.once = event.step
        index.add(entry)
    elif type(event) is e.TaskSucceeded:
        number = event.task
        task, opened = state.tasks.get(number), state.entries.get(number)
        if task is None or opened is None or opened.status != "open" or event.spent is not None:
            return False
        if task.undo is not None or task.undo_of or task.policy.deadline_ms:
            return False
        state.seq += 1
        del state.tasks[number]
        state.steps_done += 1
        opened.status = "done"
        opened.output = event.output
        state.facts.append(number)
    else:
        return False
    state.at = at
    return True
