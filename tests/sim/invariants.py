"""What must be true of a world that has ended, read from the store and the ledger, never from an engine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from tests.sim.cluster import Cluster
from tests.sim.graph_patches import INSTRUCTIONS
from tests.sim.hooks import HOOK, HOOKS, deliveries_of
from tests.sim.hot_ledger import HotLedger
from tests.sim.workflows import ANY
from weft.core import events as e
from weft.core import values
from weft.core.graph.machine import GraphMachine
from weft.core.ids import RunUid
from weft.core.machine import Machine
from weft.core.run.env import Env, MissingInputs
from weft.core.run.retry import LOST_MAX
from weft.core.run.state import FOLD, OVER
from weft.core.unfold import unfold
from weft.errors import Diverged
from weft.runtime.programs import GoalProgram, GraphProgram, new_machine
from weft.runtime.schema_check import check_schema
from weft.stores.memory.content import StoredRun
from weft.testing.history import replay_log


def breaches(cluster: Cluster) -> list[str]:
    """Everything that is wrong; empty if the promises were kept."""
    found = list(cluster.ledger.breaches)
    found += [f"an internal error: {error!r}" for error in cluster.loop.errors]
    found += _lost(cluster)
    if isinstance(cluster.ledger, HotLedger):
        found += cluster.ledger.left_over()
    for run in cluster.store.content.runs.values():
        events = [e.decode(stored.body) for stored in run.events]
        for check in (
            _log,
            _fold,
            _board,
            _times,
            _replay,
            _result,
            _children,
            _undo,
            _losers,
            _commands,
            _answers,
            _moves,
            _deliveries,
        ):
            found += [f"{run.id} ({check.__name__[1:]}): {text}" for text in check(cluster, run, events)]
    return found


def _moves(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """A run that was brought to another version was brought there once, and its row says where it is."""
    patches = [event for event in events if isinstance(event, e.RunPatched)]
    if run.new.style != "code" or not patches:
        if run.id in cluster.ledger.acks.get("move", {}):
            yield "it was moved to another version, and its log does not say so"
        return
    if len([event for event in patches if not event.undoes]) > 1:
        yield "it was moved twice"
    if run.new.version != patches[-1].version:
        yield f"its row says version {run.new.version}, its log {patches[-1].version}"


def _deliveries(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """Each event that a hook wants was delivered once, and nothing else was. Deliveries have none themselves."""
    content = cluster.store.content
    if cluster.cast is not HOOKS:
        return
    if run.new.workflow == HOOK:
        _, hook, uid, number = run.id.split("/")
        about = content.runs[RunUid(uid)]
        of = [e.decode(stored.body) for stored in about.events]
        if (hook, int(number)) not in deliveries_of(about.new.workflow, of):
            yield f"it delivers event {number} of {about.id}, which {hook} does not want"
        if run.status != "completed" and not _was_lost(events):
            yield f"it is {run.status}"
        return
    for hook, number in deliveries_of(run.new.workflow, events):
        if f"hook/{hook}/{run.new.uid}/{number}" not in content.ids:
            yield f"its event {number} was not delivered to {hook}"


def _lost(cluster: Cluster) -> Iterator[str]:
    """Every acknowledged start ends, and so does everything that a run started."""
    content = cluster.store.content
    for run_id in cluster.ledger.acks.get("start", {}):
        if run_id not in content.ids:
            yield f"{run_id} was acknowledged and does not exist"
    for run in content.runs.values():
        if run.status not in OVER:
            yield (
                f"{run.id} did not end within an hour: {run.status}, owner {run.owner}, seq {run.seq}, "
                f"inbox {len(run.inbox)}, wake {run.wake_at}, fault {run.fault}"
            )


def _log(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    if [stored.seq for stored in run.events] != list(range(1, len(run.events) + 1)):
        yield "its log has gaps"
    if run.events and not isinstance(events[0], e.RunStarted):
        yield "its log does not begin with its start"
    times = [stored.at for stored in run.events]
    if times != sorted(times):
        yield "its log goes back in time"
    lived = [event for event in events if not isinstance(event, e.LetterDiscarded | e.RunPatched)]
    ends = [
        i for i, event in enumerate(lived) if isinstance(event, e.RunCompleted | e.RunFailedEvent | e.RunCancelledEvent)
    ]
    again = [i - 1 for i, event in enumerate(lived) if isinstance(event, e.RunRetried)]
    if run.status in OVER and ends != [*again, len(lived) - 1]:
        yield f"its log ends at {ends} of {len(lived)}"
    if run.status in OVER and run.inbox:
        yield f"it is over, and mail waits: {list(run.inbox)}"
    messages = Counter(event.id for event in events if isinstance(event, e.MessageReceived))
    taken = Counter(name for event in events if isinstance(event, e.MessagesTaken) for name in event.ids)
    if any(count > 1 for count in (messages | taken).values()):
        yield "a message was received or taken twice"


def _fold(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """The fold from zero is the fold from the snapshot, and a run that is over asks nothing of the world."""
    if not events:
        return
    machine = cluster.ledger.shadows[run.new.uid].machine
    if machine.state.seq != len(events):
        yield f"the store took {machine.state.seq} events of it, and has {len(events)}"
    if machine.state.status != run.status and run.events:
        yield f"its row says {run.status}, its log {machine.state.status}"
    if run.status in OVER and machine.outstanding():
        yield f"it is over, and this is outstanding: {machine.outstanding()}"
    snapshot = run.snapshots.get(FOLD)
    if snapshot is not None:
        restored = _fresh(cluster, run, snapshot.body)
        for stored, event in zip(run.events[snapshot.seq :], events[snapshot.seq :], strict=True):
            restored.evolve(event, at=stored.at)
        if restored.snapshot() != machine.snapshot():
            yield "its snapshot and its log disagree"


def _fresh(cluster: Cluster, run: StoredRun, snapshot: bytes | None = None) -> Machine:
    program = cluster.catalogue.program(run.new.workflow, run.new.version)
    return new_machine(run.new.style, program, run.new.uid, snapshot)


def _board(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """A graph run that completed has nothing left on the board; one that failed keeps what its letters are about."""
    if run.new.style != "graph" or run.status not in ("completed", "failed"):
        return
    machine = cluster.ledger.shadows[run.new.uid].machine
    assert isinstance(machine, GraphMachine)
    state = machine.state
    if run.status == "failed":
        if run.new.workflow == "mending" and not state.letters.keys() <= state.tokens.keys():
            yield "nobody took the failure, and the branch that failed is gone"
        return
    left = {name: getattr(state, name) for name in ("tokens", "frames", "loops", "by_task", "agenda")}
    # At a node that is no join, a slot only notes who has come.
    nodes = machine.graph.nodes
    left["slots"] = [slot for slot in state.slots.values() if nodes[slot.node].join == "edges"]
    if any(left.values()):
        yield f"it is completed, and this is left of it: { {name: value for name, value in left.items() if value} }"


def _times(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """Nothing fires early, and what was accepted in time wins."""
    dues: dict[int, int] = {}
    received: dict[str, int] = {}
    for seq, event in enumerate(events, 1):
        if isinstance(event, e.MessageReceived):
            received[msgspec.json.decode(event.body)["token"]] = seq
    for seq, (stored, event) in enumerate(zip(run.events, events, strict=True), 1):
        match event:
            case e.TimerSet(due=due) | e.MessageAwaited(due=due) | e.AskOpened(due=due) | e.ChildStarted(due=due):
                dues[seq] = due
            case e.TaskFailed(task=number, retry_at=due) if due:
                dues[number] = due
            case e.TimerFired(timer=number) if stored.at < dues[number]:
                yield f"timer {number} fired {dues[number] - stored.at} ms early"
            case e.WaitTimedOut(wait=number):
                if stored.at < dues[number]:
                    yield f"wait {number} ended {dues[number] - stored.at} ms early"
                if isinstance(events[number - 1], e.MessageAwaited):
                    yield from _overtaken(cluster, run, dues[number], seq, received)


def _overtaken(cluster: Cluster, run: StoredRun, due: int, seq: int, received: dict[str, int]) -> Iterator[str]:
    if cluster.swarm.skew_ms or cluster.swarm.jumps:
        return  # whose time it was is not known then
    names = set(_waited(run, seq))
    for token, at in cluster.ledger.acks.get("message", {}).items():
        awaited = token.partition("/")[0] == run.id and cluster.named.get(token) in names
        if awaited and cluster.ms(at) < due and received.get(token, 0) > seq:
            yield f"message {token} was accepted in time, and its wait timed out"


def _waited(run: StoredRun, seq: int) -> list[str]:
    event = e.decode(run.events[seq - 1].body)
    assert isinstance(event, e.WaitTimedOut)
    awaited = e.decode(run.events[event.wait - 1].body)
    assert isinstance(awaited, e.MessageAwaited)
    return awaited.names


def _replay(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """Told its log, the code asks for nothing that is not in it, and a graph decides as it did."""
    program = cluster.catalogue.program(run.new.workflow, run.new.version)
    blobs = {digest: blob.data for digest, blob in cluster.store.content.blobs.items()}
    assert program is not None
    if not run.events:
        return
    if isinstance(program, GoalProgram):
        return  # its fold is compared with the engine's, event by event, in the shadow
    if isinstance(program, GraphProgram):
        yield from _decided(cluster, run, events, blobs)
        return
    try:
        replay_log(program, run.new.uid, run.events, blobs)
    except Diverged as error:
        yield f"replay diverges: {error}"


_FOLLOWS = (
    e.NodeRouted, e.NodeFailed, e.FailureRaised, e.TaskScheduled, e.TimerSet, e.AskOpened, e.ChildStarted,
    e.UndoScheduled, e.RunCompleted, e.RunFailedEvent, e.RunCancelledEvent,
)  # fmt: skip
"""What no command causes: it follows from the state, so it is the same for whoever has the same log."""


def _decided(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent], blobs: dict[str, bytes]) -> Iterator[str]:
    machine = _fresh(cluster, run)
    for stored, event in zip(run.events, events, strict=True):
        never_begun = isinstance(event, e.RunFailedEvent | e.RunCancelledEvent) and event.never_begun
        if isinstance(event, _FOLLOWS) and not never_begun:
            env = Env(now=stored.at, check=check_schema, blob=blobs.get, keep=_keep)
            try:
                again = machine.follow(env)
            except MissingInputs as wanting:
                yield f"event {stored.seq} needs blobs that are gone: {wanting.blobs}"
                return
            if not again or e.encode(again[0]) != stored.body:
                yield f"event {stored.seq} is {event}, and would now be {list(again)}"
                return
        machine.evolve(event, at=stored.at)
    if machine.state.over and machine.follow(Env(now=machine.state.at, check=check_schema)):
        yield "it is over, and something follows"


def _keep(raw: bytes) -> Raw:
    sealed = values.seal(raw)
    if len(sealed) <= values.INLINE_BYTES_MAX:
        return Raw(sealed)
    return Raw(values.blob_ref(hashlib.sha256(raw).hexdigest(), len(raw)))


def _result(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """What it gave is what it gives in a world without faults, and what those who waited were told."""
    if not events or run.status not in OVER:
        return
    last = _end(events)
    told: Any = None
    match last:
        case e.RunCompleted(output=output):
            told = _read(cluster, bytes(output))
        case e.RunFailedEvent(failure=failure):
            told = failure.type
        case e.RunCancelledEvent():
            told = "cancelled"
    retried = any(isinstance(event, e.RunRetried) for event in events)
    for run_id, heard in cluster.results:
        if run_id == run.id and heard != told and not retried:
            yield f"somebody was told {heard!r}, and it is {told!r}"
    spec = cluster.specs.get(run.id)
    if spec is None:
        return
    kind = cluster.cast.kinds[spec[0]]
    gives = kind.gives(spec[1])
    if run.new.style == "graph" and (_was_lost(events) or _was_steered(run, events)):
        return  # a failure that no world without faults has, and graphs route failures; or tokens went elsewhere
    if isinstance(last, e.RunCancelledEvent):
        if not any(isinstance(event, e.CancelRequested) for event in events):
            yield "it was cancelled, and nobody asked for that"
    elif isinstance(last, e.RunFailedEvent):
        if told != kind.fails and not (told in ("WorkerLost", "StepFailed", "BranchesFailed") and _was_lost(events)):
            yield f"it failed with {last.failure}"
    elif (kind.fails and not kind.letters) or not _is_given(told, gives):
        yield f"it gave {str(told)[:200]} instead of {str(gives)[:200]}"
    if (kind.messages or kind.requests) and isinstance(last, e.RunCompleted):
        yield from _consumed(told, events)


def _end(events: list[e.AnyEvent]) -> e.AnyEvent:
    """The last event, but for letters that were thrown away since, and patches of a run that has failed."""
    return next(event for event in reversed(events) if not isinstance(event, e.LetterDiscarded | e.RunPatched))


def _is_given(told: Any, gives: Any) -> bool:
    if callable(gives):
        return bool(gives(told))
    return gives is ANY or told == gives or (isinstance(gives, set) and told in gives)


def _consumed(told: list[str | None], events: list[e.AnyEvent]) -> Iterator[str]:
    """The code was given the messages that it took, in the order of their arrival."""
    bodies = {
        event.id: msgspec.json.decode(event.body)["token"] for event in events if isinstance(event, e.MessageReceived)
    }
    taken = [bodies[name] for event in events if isinstance(event, e.MessagesTaken) for name in event.ids]
    if [token for token in told if token is not None] != taken:
        yield f"it was given {told}, and took {taken}"


def _was_lost(events: list[e.AnyEvent]) -> bool:
    losses = Counter(event.task for event in events if isinstance(event, e.TaskLost))
    return any(count >= LOST_MAX for count in losses.values())


def _was_steered(run: StoredRun, events: list[e.AnyEvent]) -> bool:
    """Whether a patch told tokens where to go, or to work again, or put a node before a join that names its senders."""
    patches = [msgspec.json.decode(event.patch) for event in events if isinstance(event, e.RunPatched)]
    names_senders = run.new.workflow == "choice"
    return any(name in patch for patch in patches for name in INSTRUCTIONS) or bool(names_senders and patches)


def _read(cluster: Cluster, raw: bytes) -> Any:
    if values.is_ref(raw):
        return msgspec.json.decode(cluster.store.content.blobs[values.parse_ref(raw).digest].data)
    return msgspec.json.decode(values.unseal(raw))


def _children(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """Every child that the log has exists, and its end is what the parent heard."""
    for seq, event in enumerate(events, 1):
        if not isinstance(event, e.ChildStarted) or event.refused is not None:
            continue
        child = cluster.store.content.runs.get(RunUid(event.uid))
        if child is None:
            yield f"its child {event.run_id} does not exist"
            continue
        ends = [other for other in events if isinstance(other, e.ChildEnded) and other.child == seq]
        if len(ends) > 1:
            yield f"it heard {len(ends)} times that {event.run_id} ended"
        if ends and ends[0].status != child.status:
            yield f"it heard that {event.run_id} {ends[0].status}, and it {child.status}"


def _undo(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """A run that failed or was cancelled has taken back what it did, newest first."""
    if run.status not in ("failed", "cancelled") or any(isinstance(event, e.RunRetried) for event in events):
        return
    assert isinstance(_end(events), e.RunFailedEvent | e.RunCancelledEvent)
    scheduled = {seq: task for seq, task in tasks_in(events) if task.undo}
    done = [event.task for event in events if isinstance(event, e.TaskSucceeded) and event.task in scheduled]
    undos = [event.of for event in events if isinstance(event, e.UndoScheduled)]
    dropped = [event.of for event in events[: _ending(events)] if isinstance(event, e.UndoScheduled)]
    own = [task for task in undos[len(dropped) :] if task in done]
    if own != [task for task in reversed(done) if task not in dropped] or len(undos) != len(set(undos)):
        yield f"it completed {done} and undid {undos}, {len(dropped)} of them while it went on"
    final = {event.task for event in events if isinstance(event, e.TaskFailed) and not event.retry_at}
    given_up = cluster.ledger.shadows[run.new.uid].given_up
    if cluster.swarm.skew_ms or cluster.swarm.jumps:
        # By a clock that was ahead, or went back, a retry may have begun that the log still sees in the future.
        final |= given_up.keys()
        given_up = {}
    for key, (uid, task) in cluster.ledger.returned.items():
        if uid == run.new.uid and task in scheduled and task not in undos and task not in final:
            yield f"{key} was performed, and never undone"
    for task, hand_out in given_up.items():
        if task in scheduled and task not in undos and cluster.ledger.last_begun.get((run.new.uid, task)) == hand_out:
            yield f"task {task} was given up while it was performed, and never undone"


def tasks_in(events: list[e.AnyEvent]) -> Iterator[tuple[int, e.TaskScheduled]]:
    """The tasks that a log has scheduled, by their numbers."""
    for number, record in enumerate(events, 1):
        for event in unfold(record):
            if isinstance(event, e.TaskScheduled):
                yield number, event


def _ending(events: list[e.AnyEvent]) -> int:
    """Where the log has the end of what the run wanted to do."""
    for place, event in enumerate(events):
        if isinstance(event, e.RunEnding) or (isinstance(event, e.FailureRaised) and not event.taker):
            return place
    return len(events)


def _losers(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """A run that completed has undone what it dropped, and only that, and has waited for it."""
    if run.status != "completed":
        return
    scheduled = {seq: task for seq, task in tasks_in(events) if task.undo}
    ended = {event.task for event in events if isinstance(event, e.TaskSucceeded | e.TaskFailed)}
    undos = {seq: event.of for seq, event in enumerate(events, 1) if isinstance(event, e.UndoScheduled)}
    for seq, task in undos.items():
        if seq not in ended:
            yield f"it completed before {task} was undone"
    if run.new.workflow == "hedged":
        yield from _rivals(cluster, run, events, scheduled)
    if run.new.workflow != "betting":
        return
    completed = _end(events)
    assert isinstance(completed, e.RunCompleted)
    told = _read(cluster, bytes(completed.output))
    lost = told == "quick" if run.new.style == "code" else isinstance(told["got"][0], int)
    done = [event.task for event in events if isinstance(event, e.TaskSucceeded) and event.task in scheduled]
    back = [task for task in undos.values() if task in done]
    if back != (done[::-1] if lost else []):
        yield f"its loser completed {done}, and it undid {back}"
    for key, (uid, task) in cluster.ledger.returned.items():
        if lost and uid == run.new.uid and task in scheduled and task not in undos.values() and task in ended:
            final = [event for event in events if isinstance(event, e.TaskFailed) and event.task == task]
            if not final:
                yield f"{key} was performed, and never undone"


def _rivals(
    cluster: Cluster, run: StoredRun, events: list[e.AnyEvent], scheduled: dict[int, e.TaskScheduled]
) -> Iterator[str]:
    """Two steps gave one fact: what the one performed whose value was not taken is undone, once."""
    completed = _end(events)
    assert isinstance(completed, e.RunCompleted)
    winner = "hold_" + _read(cluster, bytes(completed.output))["facts"]["room"].partition(" ")[0]
    done = [event.task for event in events if isinstance(event, e.TaskSucceeded) and event.task in scheduled]
    lost = [task for task in done if scheduled[task].step != winner]
    undos = [event.of for event in events if isinstance(event, e.UndoScheduled)]
    if sorted(task for task in undos if task in done) != sorted(lost):
        yield f"{winner} won, its rival completed {lost}, and it undid {undos}"
    given_up = {event.task for event in events if isinstance(event, e.TaskFailed) and not event.retry_at}
    for key, (uid, task) in cluster.ledger.returned.items():
        mine = uid == run.new.uid and task in scheduled and scheduled[task].step != winner
        if mine and task not in undos and task not in given_up:
            yield f"{key} was performed, and never undone"


def _commands(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """What was acknowledged is in the log, once; what was refused is not."""
    ledger = cluster.ledger
    tokens = Counter(
        msgspec.json.decode(event.body)["token"] for event in events if isinstance(event, e.MessageReceived)
    )
    for token in ledger.acks.get("message", {}):
        if token.rpartition("/")[0] == run.id and tokens[token] != 1:
            yield f"message {token} was acknowledged and is there {tokens[token]} times"
    for token, why in ledger.refused.get("message", {}).items():
        if token.rpartition("/")[0] == run.id and tokens[token] and f"message {token}" not in ledger.unknown:
            yield f"message {token} was refused ({why}) and is there"
    for token, count in tokens.items():
        if count > 1:
            yield f"message {token} is there {count} times"
    cancels = sum(isinstance(event, e.CancelRequested) for event in events)
    if cancels > 1:
        yield f"it was told {cancels} times to stop"
    too_late = any(isinstance(event, e.RunEnding | e.FailureRaised) for event in events)
    if run.id in ledger.acks.get("cancel", {}) and not cancels and not too_late:
        yield "its cancellation was acknowledged and is not there"
    answers = [event for event in events if isinstance(event, e.AskAnswered) and event.by]
    if len(answers) > 1:
        yield f"it was answered {len(answers)} times"
    for what, kind in (("requeue", e.RunRetried), ("discard", e.LetterDiscarded)):
        if run.id in ledger.acks.get(what, {}) and not any(isinstance(event, kind) for event in events):
            yield f"{what} was acknowledged and is not there"
    keys = [key for key in ledger.acks.get("patch", {}) if key.rpartition("/")[0] == run.id]
    patched = [event for event in events if isinstance(event, e.RunPatched) and not event.undoes]
    if len(keys) > len(patched) or len(patched) > 2:
        yield f"the patches {keys} were acknowledged, and it has {len(patched)}"
    if run.id in ledger.refused.get("answer", {}) and answers and f"answer {run.id}" not in ledger.unknown:
        yield "an answer was refused and is there"


def _answers(cluster: Cluster, run: StoredRun, events: list[e.AnyEvent]) -> Iterator[str]:
    """A request that was taken is in the log, and is answered once, with what everybody is told who asks."""
    ledger = cluster.ledger
    requests = {
        msgspec.json.decode(event.body)["token"]: event.id
        for event in events
        if isinstance(event, e.MessageReceived) and event.answer
    }
    answered = [event for event in events if isinstance(event, e.MessageAnswered) and not event.repeated]
    given = {event.message: event for event in answered}
    if len(given) != len(answered):
        yield "a request was answered twice"
    mine = [token for token in ledger.acks.get("request", {}) if token.rpartition("/")[0] == run.id]
    for token in mine:
        if token not in requests:
            yield f"request {token} was acknowledged and is not there"
    for token, told in cluster.answers:
        answer = given.get(requests.get(token, "")) if token.rpartition("/")[0] == run.id else None
        if token in mine and (answer is None or _read(cluster, bytes(answer.output)) != told):
            yield f"the sender of {token} was told {str(told)[:100]}, and the log has {str(answer)[:100]}"
    for token, why in ledger.refused.get("answered", {}).items():
        if requests.get(token, "") in given and token in mine:
            yield f"the sender of {token} was refused ({why}), and the log has an answer"
    taken = {name for event in events if isinstance(event, e.MessagesTaken) for name in event.ids}
    if run.status == "completed" and not taken & set(requests.values()) <= given.keys():
        yield f"it completed, and owes answers: {taken - given.keys()}"
