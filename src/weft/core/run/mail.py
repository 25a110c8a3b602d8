"""Mail from a run to other runs, which starts and stops children and reports the end to the parent. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import OutgoingMail
from weft.core.run.children import parent_report
from weft.core.run.style import AnyRun, MailRows


def stop_child(run: AnyRun, uid: str) -> OutgoingMail:
    """Return the mail that cancels a child whose result is no longer needed."""
    return OutgoingMail(to=uid, command=c.CancelRun(reason=f"{run.state.run_id} no longer waits for it"))


def _start_child(run: AnyRun, event: e.ChildStarted) -> Sequence[OutgoingMail]:
    if event.refused is not None:
        return ()
    return (OutgoingMail(to=event.uid, command=run.style.start_for_child(event), create=True),)


def _stop_child(run: AnyRun, event: e.EntryCancelled | e.WaitTimedOut | e.ResultSet) -> Sequence[OutgoingMail]:
    return (stop_child(run, event.child),) if event.child else ()


def _report_end(run: AnyRun, _: e.AnyEvent) -> Sequence[OutgoingMail]:
    """Report the end of a run to the parent that waits for it, or to the schedule that started it."""
    state = run.state
    if state.schedule:
        return (OutgoingMail(to=state.schedule, command=c.ReportRunEnded(uid=state.uid, status=state.status)),)
    parent = state.parent
    if parent is None or not parent.entry:
        return ()
    return (OutgoingMail(to=parent.uid, command=parent_report(state, parent)),)


def _report_moved(run: AnyRun, _: e.RunMoved) -> Sequence[OutgoingMail]:
    """Report to the schedule that started the run, which waits for it no longer. A parent moves with its children."""
    state = run.state
    if not state.schedule:
        return ()
    return (OutgoingMail(to=state.schedule, command=c.ReportRunEnded(uid=state.uid, status=state.status)),)


MAIL: MailRows = {
    e.ChildStarted: _start_child,
    e.EntryCancelled: _stop_child,
    e.WaitTimedOut: _stop_child,
    e.ResultSet: _stop_child,
    e.RunCompleted: _report_end,
    e.RunFailedEvent: _report_end,
    e.RunCancelledEvent: _report_end,
    e.RunMoved: _report_moved,
}
