"""No port of a store tells a tenant of another: made from the protocols, so a method without a rule here fails."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import msgspec
import pytest

import weft
from tests.server.kit import Server
from tests.server.test_tenants import server as server  # noqa: PLC0414 - the same two tenants
from weft.core.ids import Millis, RunId, Seq
from weft.core.ledger import account_of
from weft.core.run.state import FOLD
from weft.ports import store as store_ports
from weft.ports import streams as stream_ports
from weft.ports import tags as tag_ports
from weft.ports.retention import AuditEntry, DoomOutcome, DoomResult, DoomRule
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.saved_views import SavedView
from weft.ports.step_logs import LogQuery, LogTotals
from weft.ports.store import Page, RunRow, Store
from weft.ports.streams import NewChunk
from weft.ports.tags import Tag, TagKey
from weft.runtime.run.append_extras import DEAD_LETTERS
from weft.runtime.tenancy import TenantService

FOREIGN_TAG = Tag(key=TagKey("b", "hello", "x"), version="1", cursor=1, moves=1, revision=1, at=Millis(1))
FOREIGN_VIEW = SavedView(tenant="b", name="same", query="", saved_by="x", saved_at=Millis(1))
# What each method of a port is to the store that a tenant's requests see. A method without a rule fails.
# ABSENT: there is no such method or port. FOREIGN_EMPTY: asked for another tenant's run, it finds nothing.
# REFUSED: it is about all tenants. COMMON: definitions and blobs have no tenant; a blob is asked for by its content.
ABSENT, FOREIGN_EMPTY, REFUSED, COMMON = "absent", "foreign_empty", "refused", "common"
PORT_RULES = {
    "log": {"load": FOREIGN_EMPTY, "events": FOREIGN_EMPTY, "inbox": FOREIGN_EMPTY, "refers_to": FOREIGN_EMPTY},
    "directory": {
        "find": FOREIGN_EMPTY, "row": FOREIGN_EMPTY, "key": FOREIGN_EMPTY, "search": FOREIGN_EMPTY, "counts": REFUSED,
        "open_versions": FOREIGN_EMPTY, "count": FOREIGN_EMPTY, "workflows": FOREIGN_EMPTY,
    },
    "budgets": {"read": FOREIGN_EMPTY, "forget": COMMON},
    "streams": {"read": FOREIGN_EMPTY, "write": FOREIGN_EMPTY, "lengths": FOREIGN_EMPTY},
    "starts": {"rule": COMMON, "with_slot": FOREIGN_EMPTY},
    "step_logs": {"read": FOREIGN_EMPTY, "totals": FOREIGN_EMPTY},
    "blobs": {"put": COMMON, "get": COMMON, "sweep": COMMON},
    "retention": {"doom": FOREIGN_EMPTY, "clear": COMMON, "is_doomed": FOREIGN_EMPTY},
    "holds": {
        "add": FOREIGN_EMPTY, "end": FOREIGN_EMPTY, "find": FOREIGN_EMPTY, "audit": FOREIGN_EMPTY,
        "record": FOREIGN_EMPTY,
    },
    "tags": {"get": FOREIGN_EMPTY, "find": FOREIGN_EMPTY, "moves": FOREIGN_EMPTY, "write": FOREIGN_EMPTY},
    "saved_views": {"put": FOREIGN_EMPTY, "list": FOREIGN_EMPTY, "remove": FOREIGN_EMPTY},
    "definitions": {
        "put": COMMON, "get": COMMON, "versions": COMMON, "names": COMMON, "promote": COMMON,
        "unused": COMMON, "remove": COMMON,
    },
}  # fmt: skip


def ports() -> dict[str, list[str]]:
    """Every port of a store with its methods, from the protocols."""
    found = {}
    for name, member in vars(Store).items():
        if isinstance(member, property) and member.fget is not None:
            kind = typing.get_type_hints(member.fget, vars(store_ports) | vars(stream_ports) | vars(tag_ports)).get(
                "return"
            )
            if isinstance(kind, type) and getattr(kind, "_is_protocol", False):
                found[name] = [each for each in vars(kind) if inspect.iscoroutinefunction(vars(kind)[each])]
    return found


def test_the_ports_of_a_store_are_found() -> None:
    assert ports().keys() >= {
        "log",
        "directory",
        "hosts",
        "blobs",
        "tasks",
        "definitions",
        "tags",
        "streams",
        "access",
        "memos",
    }
    assert "search" in ports()["directory"]


@pytest.mark.parametrize(("port", "method"), [(port, each) for port, methods in ports().items() for each in methods])
def test_no_method_of_a_port_tells_a_tenant_of_another(server: Server, port: str, method: str) -> None:
    """Made from the protocols: a method that a tenant's store has must be listed, and is tried."""
    store = TenantService(server.app.service, "a").store
    rule = PORT_RULES.get(port, {}).get(method, ABSENT)
    found = getattr(getattr(store, port, None), method, None)
    if rule == ABSENT:
        assert found is None, f"say in PORT_RULES what {port}.{method} is to a tenant"
        return
    assert found is not None
    if rule == REFUSED:
        with pytest.raises(weft.NotAllowed):
            server.inside(found())
    elif rule == FOREIGN_EMPTY:
        for run in ("@b/only-b", "@b/same", "@b/dead-b"):
            row = server.inside(server.app.service.row(RunId(run)))
            for arguments, options in foreign(port, method, row):
                assert not nonempty(server.inside(found(*arguments, **options))), (run, arguments)


def foreign(port: str, method: str, row: RunRow) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls that ask for another tenant's run."""
    queries = [
        RunQuery(id_prefix=row.id),
        RunQuery(id_prefix="@b/"),
        RunQuery(where={DEAD_LETTERS: True}, id_prefix="@b"),
    ]
    calls: dict[tuple[str, str], list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
        ("log", "load"): [((row.uid,), {"fold": FOLD})],
        ("log", "events"): [((row.uid,), {"after": 0, "limit": 10})],
        ("log", "inbox"): [((row.uid,), {})],
        ("log", "refers_to"): [((row.uid, "0" * 64), {})],
        ("saved_views", "put"): [((FOREIGN_VIEW,), {})],
        ("saved_views", "list"): [(("b",), {}), (("",), {})],
        ("saved_views", "remove"): [(("b", "same"), {})],
        ("directory", "count"): [((queries,), {"limit": 5})],
        ("directory", "workflows"): [(("only-b",), {"limit": 5})],
        ("directory", "find"): [((row.id,), {}), ((row.id.removeprefix("@"),), {})],
        ("directory", "row"): [((row.uid,), {})],
        ("directory", "key"): [((row.uid, "k"), {})],
        ("directory", "search"): [((query,), {}) for query in queries],
        ("directory", "open_versions"): [(("@b/",), {})],
        ("tags", "get"): [((TagKey("b", "hello", "same"),), {})],
        ("tags", "find"): [(("b",), {}), (("b", "hello"), {})],
        ("tags", "moves"): [((TagKey("b", "hello", "same"),), {})],
        ("tags", "write"): [((FOREIGN_TAG,), {})],
        ("starts", "with_slot"): [((slot,), {}) for slot in ("singleton:@b/hello:same", "batch:@b/hello:same")],
        ("budgets", "read"): [(([row.uid, account_of(row.uid)],), {})],
        ("streams", "read"): [((row.uid, "s"), {"after": 0, "limit": 10})],
        ("streams", "write"): [(([NewChunk(uid=row.uid, stream="s", key="k", body=b"1", at=Millis(1))],), {})],
        ("streams", "lengths"): [((row.uid,), {})],
        ("step_logs", "read"): [((row.uid, LogQuery()), {})],
        ("step_logs", "totals"): [((row.uid,), {})],
    }
    entry = AuditEntry(
        at=Millis(0), verb="delete", run=row.id, uid=row.uid, workflow=row.workflow, by="", reason="foreign"
    )
    calls |= {
        ("retention", "doom"): [((row.uid, DoomRule(), entry), {})],
        ("retention", "is_doomed"): [((row.id,), {})],
        ("holds", "add"): [((row.uid, entry), {})],
        ("holds", "end"): [((row.uid, entry), {})],
        ("holds", "find"): [(([row.uid],), {})],
        # Of another run: what is recorded becomes the tenant's own, and ``audit`` would find it.
        ("holds", "record"): [((msgspec.structs.replace(entry, run=RunId(f"{row.id}-recorded")),), {})],
        ("holds", "audit"): [((), {}), ((), {"run": row.id})],
    }
    return calls[port, method]


def nonempty(answered: Any) -> bool:
    if isinstance(answered, LogTotals):
        return answered != LogTotals()
    if isinstance(answered, DoomResult):
        return answered != DoomResult(outcome=DoomOutcome.UNKNOWN_RUN)
    if isinstance(answered, list) and answered and isinstance(answered[0], RunCount):
        return any(one.count for one in answered)
    return bool(answered.rows) if isinstance(answered, Page) else bool(answered)


def test_a_tenants_store_reads_its_own(server: Server) -> None:
    """What is empty above is so because it is another's, and not because nothing is ever found."""
    operator, own = server.app.service, TenantService(server.app.service, "a")
    row = server.inside(operator.row(RunId("@a/same")))

    assert server.inside(own.store.log.events(row.uid, after=Seq(0), limit=10))
    assert server.inside(own.store.log.load(row.uid, fold=FOLD)) is not None
    assert server.inside(own.store.directory.search(RunQuery(id_prefix="same"))).rows
    assert msgspec.structs.asdict(server.inside(own.row(RunId("same"))))["id"] == "same"
