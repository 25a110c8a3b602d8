"""Effect contracts: what may happen to work that was, or may have been, performed before. Pure.

``CONTRACTS`` is the table, one row per situation. ``judge_effect`` reads it. Two pieces of work are *equal* if they
have the same step and the same input, at the same place. Where places moved, they are equal if they are the same use,
counted from the start, of that step with that input.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from weft.core.event_parts import Effect

Situation = Literal[
    "failed",
    "lost",
    "recalled",
    "repeated",
    "copied",
    "forked",
    "reused",
    "shadowed",
    "dropped",
]
"""What has happened, or is about to happen, to a piece of work.

- ``failed``: an attempt failed.
- ``lost``: its worker disappeared, or an attempt timed out.
- ``recalled``: a cache or another run has a result for it.
- ``repeated``: a restart, a retry or a move back reaches it again.
- ``copied``: a fork has it in the part of the log that it shares with the original.
- ``forked``: a fork reaches it after that point.
- ``reused``: the same in a fork with ``--effects reuse``.
- ``shadowed``: the same in a fork with ``--effects none``.
- ``dropped``: nobody needs it any more, and a worker performs it.
"""

Act = Literal["perform", "perform_new", "keep", "ask", "hold", "refuse", "fail", "unknown", "stop", "drain"]
"""What happens to the work.

- ``perform``: it is performed, with the key of its place. If it was performed there before, this is the same key.
- ``perform_new``: it is performed with a new key, ``place~n``.
- ``keep``: it is not performed; the recorded result is used.
- ``ask``: it is not dispatched until a person approves.
- ``hold``: it is not performed, and the run is held with ``would_perform``.
- ``refuse``: the recorded result must not be used.
- ``fail``: it has failed for good.
- ``unknown``: it has failed for good, with an unknown outcome.
- ``stop``: its worker is told to stop, and a late result has no effect.
- ``drain``: its worker goes on to the end.
"""

Undoing = Literal["as_effect", "if_unknown", "never", "earlier_too", "original", "own", "after"]
"""What happens to the undo of the work, if it has one.

- ``as_effect``: it is registered when the work completes.
- ``if_unknown``: it is registered even if the outcome is unknown.
- ``never``: it is not registered.
- ``earlier_too``: the undo of the earlier work stays registered too.
- ``original``: it belongs to the original run, not to the fork.
- ``own``: it is registered for the fork if the fork performs the work.
- ``after``: it is performed as soon as the work has ended.
"""


class Clause(NamedTuple):
    """What one effect means in one situation."""

    equal: Act
    """For equal work."""
    other: Act
    """For work with another step or input, or if there is no earlier work."""
    unrecorded: Act
    """For equal work that has no recorded result."""


class Contract(NamedTuple):
    """One row of the table: the clause of each effect, and what an undo changes."""

    pure: Clause
    idempotent: Clause
    irreversible: Clause
    undoing: Undoing
    with_undo: Act | None = None
    """What happens to work with an undo, if that is not what its effect says."""


def _always_act(act: Act) -> Clause:
    return Clause(act, act, act)


def _act_if_equal(act: Act, other: Act) -> Clause:
    return Clause(act, other, other)


CONTRACTS: dict[Situation, Contract] = {
    "failed": Contract(_always_act("perform"), _always_act("perform"), _always_act("fail"), "as_effect"),
    "lost": Contract(_always_act("perform"), _always_act("perform"), _always_act("unknown"), "if_unknown"),
    "recalled": Contract(
        Clause("keep", "refuse", "keep"),
        _act_if_equal("keep", "refuse"),
        _always_act("refuse"),
        "never",
        with_undo="refuse",
    ),
    "repeated": Contract(
        _always_act("perform"),
        Clause("perform", "perform_new", "perform"),
        Clause("keep", "ask", "ask"),
        "earlier_too",
    ),
    "copied": Contract(_always_act("keep"), _always_act("keep"), _always_act("keep"), "original"),
    "forked": Contract(_act_if_equal("keep", "perform"), _always_act("perform"), _act_if_equal("keep", "ask"), "own"),
    "reused": Contract(
        _act_if_equal("keep", "perform"), _act_if_equal("keep", "perform"), _act_if_equal("keep", "ask"), "own"
    ),
    "shadowed": Contract(_always_act("perform"), _act_if_equal("keep", "hold"), _act_if_equal("keep", "hold"), "never"),
    "dropped": Contract(_always_act("stop"), _always_act("stop"), _always_act("drain"), "after", with_undo="drain"),
}


def judge_effect(
    situation: Situation,
    effect: Effect,
    *,
    equal: bool = True,
    recorded: bool = True,
    has_undo: bool = False,
) -> Act:
    """Return what happens to a piece of work.

    Args:
        situation: Where the work stands.
        effect: The effect of its step.
        equal: The earlier work had the same step and input. False if there is no earlier work.
        recorded: The earlier work has a result. A failure is not a result, and if the work is idempotent, the result
            of another run is one only if the step says ``cache``.
        has_undo: The step has an undo.
    """
    contract = CONTRACTS[situation]
    if has_undo and contract.with_undo is not None:
        return contract.with_undo
    clause: Clause = getattr(contract, effect)
    if not equal:
        return clause.other
    return clause.equal if recorded else clause.unrecorded
