"""A version that a patch of one tenant made does not exist for another tenant."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import weft
from weft.errors import NotFound, UnknownWorkflow
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import ForkService
from weft.runtime.orders import StartOrder
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.publication import WorkflowPatch
from weft.runtime.tenancy import TenantService
from weft.runtime.versions import VersionService
from weft.testing import World

GRAPH = {"weft": "graph/1", "name": "leads", "nodes": {"wait": {"receive": "go"}}}
OPS = [
    {"op": "add", "path": "/nodes/secret", "value": {"pass": True}},
    {"op": "add", "path": "/nodes/wait/next", "value": "secret"},
]
Way = Callable[[TenantService, str], Coroutine[Any, Any, object]]
WAYS: dict[str, Way] = {
    "get": lambda service, version: VersionService(service).get("leads", version),
    "start": lambda service, version: service.start(StartOrder(workflow=f"leads@{version}", id="new")),
    "patch": lambda service, version: PatchService(service).patch("own", {"to": version}, PatchOptions(dry_run=True)),
    "fork": lambda service, version: ForkService(service).fork("own", ForkOrder(id="fork", to=version)),
    "tag": lambda service, version: VersionService(service).tag("leads", "live", version),
    "publish": lambda service, version: VersionService(service).publish(
        "leads", "live", WorkflowPatch(patch={"to": version})
    ),
}


def test_only_the_operator_and_the_tenant_whose_run_names_it_can_use_it() -> None:
    app = weft.App("memory://")
    app.graph(GRAPH)
    world = World(app)

    def tenant(name: str) -> TenantService:
        return TenantService(world.app.service, name)

    for name in ("t1", "t2"):
        world.perform(lambda name=name: tenant(name).start(StartOrder(workflow="leads", id="own")))
    world.settle()
    version = world.perform(lambda: PatchService(tenant("t1")).patch("own", {"ops": OPS})).version
    world.settle()

    for name, way in WAYS.items():
        with pytest.raises((NotFound, UnknownWorkflow)):
            world.perform(lambda way=way: way(tenant("t2"), version))
            pytest.fail(f"{name} uses a version of another tenant")
    for way in WAYS.values():
        world.perform(lambda way=way: way(tenant("t1"), version))
    assert world.perform(lambda: VersionService(world.app.service).get("leads", version)).source is not None
    world.close()
