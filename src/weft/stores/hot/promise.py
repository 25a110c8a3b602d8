"""Say in one sentence what may be lost, from what the server reports. Pure."""

from __future__ import annotations

from weft.core.plurals import pluralize
from weft.ports.wal_server import ServerFacts
from weft.stores.hot.facts import NO_FSYNC_DURING_REWRITES
from weft.stores.hot.policy import END, EVENT, HotPolicy

_FSYNC = {
    "always": "nothing if the machine of Redis loses power",
    "everysec": "those of the last second if the machine of Redis loses power",
    "no": "those of about the last 30 seconds if the machine of Redis loses power",
}


def server_text(facts: ServerFacts) -> str:
    """Return the name, version and settings of a server in a few words, such as "valkey 9.1.2, AOF everysec"."""
    return ", ".join(
        (
            f"{facts.server or 'redis'} {facts.version or 'of unknown version'}",
            _aof_text(facts),
            "replicas unknown" if facts.replicas is None else pluralize(facts.replicas, "replica"),
        )
    )


def what_may_be_lost(facts: ServerFacts | None, policy: HotPolicy) -> str:
    """Return the sentence that says what may be lost. None: the server has not answered yet."""
    facts = facts or ServerFacts()
    losses = [_loss_at_restart(facts)]
    if facts.replicas != 0:
        known = "" if facts.replicas else " (whether it has replicas is not known)"
        losses.append(f"those that the replica lacked if Redis fails over{known}")
    losses.append(f"{_loss_of_undrained(policy)} if Redis is gone for good")
    return (
        "Answered commands, results and irreversible steps are never lost; if a host dies and Redis loses data at the "
        f"same time, plain steps that were not yet in Postgres run again: {', '.join(losses[:-1])}, and {losses[-1]}."
    )


def server_warning(facts: ServerFacts) -> str:
    """Return what should be changed about the server; empty if nothing."""
    if facts.aof is False:
        return "Redis has no AOF, so it loses everything when it restarts; set appendonly to yes."
    return ""


def _aof_text(facts: ServerFacts) -> str:
    if facts.aof is None:
        return "AOF unknown"
    return f"AOF {facts.appendfsync or 'with unknown appendfsync'}" if facts.aof else "no AOF"


def _loss_at_restart(facts: ServerFacts) -> str:
    if facts.aof is False:
        return "all of them if Redis restarts, because it has no AOF"
    if facts.appendfsync is not None and facts.appendfsync.endswith(NO_FSYNC_DURING_REWRITES):
        return _FSYNC["no"]
    if facts.aof is None or facts.appendfsync not in _FSYNC:
        return "how many if the machine of Redis loses power is not known, because the server does not tell"
    return _FSYNC[facts.appendfsync]


def _loss_of_undrained(policy: HotPolicy) -> str:
    match policy:
        case _ if policy == EVENT:
            return "those of the last 50 milliseconds, or of up to 10 seconds while Postgres is slow,"
        case _ if policy == END:
            return "those of up to the last minute"
        case _:
            return f"those of the last {policy.name}, or of up to 10 seconds more while Postgres is slow,"
