"""Patch runs: let them follow another definition from where they stand, undo that, and list what was done.

A patch is judged twice by the same function: on a read-only copy of the run, which gives the plan, and by the run
itself, which applies it only if the plan is still the same. So the plan that a caller gets is what happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.findings import Finding
from weft.core.ids import RunId, Seq
from weft.core.run.asked_patches import check_asked
from weft.core.run.env import Env
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import check_review, judge_patch, moved_on, patch_refused
from weft.core.run.revisions import to_redo, to_undo
from weft.core.run.state import State
from weft.core.run.statuses import unknown_command
from weft.core.run.style import AnyRun, JudgedPatch
from weft.core.run.worked_out import hand_over
from weft.errors import BadPatch, KeyReused, PatchRefused, Refused, RunFinished, StaleBase, UsageError
from weft.ports.definitions import Definitions
from weft.ports.hosts import Hosts
from weft.ports.store import IMPORTED, MOVED, RunRow
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.code_patches import prepare_code_patch, prepare_code_undo
from weft.runtime.compiled_documents import CompiledDocuments
from weft.runtime.decision_inputs import DecisionInputs
from weft.runtime.finished_error import imported_error, moved_error
from weft.runtime.goal_patches import let_undo_end_run, prepare_goal_patch, prepare_goal_undo
from weft.runtime.graph_patches import prepare_graph_patch, prepare_graph_undo
from weft.runtime.offered_versions import is_hosted, is_offered, sees_version
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.patch_parts import PatchParts, PreparedPatch
from weft.runtime.patch_policy import UNDO, Patcher, needs_names, operation_names, reviewers
from weft.runtime.policy import tenant_of
from weft.runtime.programs import code_program, is_graph, is_published, read_graph, store_definition
from weft.runtime.replays import replay_onward
from weft.runtime.run.driver import Program
from weft.runtime.run.replay import Replayed
from weft.runtime.run_versions import RunVersion, list_run_versions
from weft.runtime.service import RunService
from weft.runtime.tags import WorkflowTags

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext

TRIES_MAX = 20
"""How often a patch is judged again because the run has moved on meanwhile."""
HANDED_OVER_MAX = 5
"""How often a run gets a plan that was worked out here. If it moves on all the time, it works the plan out itself."""
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.02
LOOK_SECONDS = 0.5
"""How often to look whether the host to which a patch was sent has died."""
NO_HOST = "No process hosts the run now; the next host gets the patch."
NOT_YET = "The run has the patch and has not acted on it yet."
UNLESS_GONE_ON = "It is applied only if the run has not gone on by then."
EMPTY = Raw(b"{}")
ENDS = Raw(b'{"ends":true}')


class PatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who patches a run, and how."""

    by: str = ""
    reason: str = ""
    expect: str = ""
    """The digest of the only plan that may be applied."""
    dry_run: bool = False
    key: str | None = None
    approved_by: list[str] = []
    reviewed_by: list[str] = []
    """Who was asked about this patch together with others, and agreed."""
    asks: bool = True
    """Whether people are asked if they must agree. Otherwise the patch is refused."""
    wait_ms: int = 0
    """How long the patch waits if it is not allowed now."""
    at: str = ""
    """Wait until all tokens of the run are at this node."""
    review: list[str] = []
    """Who must agree before it is applied."""
    roles: Sequence[str] = ()
    """The roles of the one who patches, for the rules of the policy."""


NO_OPTIONS = PatchOptions()


Prepare = Callable[[PatchParts, RunRow, bytes], Awaitable[PreparedPatch]]
PrepareUndo = Callable[[PatchParts, RunRow, State, int], Awaitable[PreparedPatch]]
PREPARE: Mapping[str, tuple[Prepare, PrepareUndo]] = {
    "code": (prepare_code_patch, prepare_code_undo),
    "graph": (prepare_graph_patch, prepare_graph_undo),
    "goal": (prepare_goal_patch, prepare_goal_undo),
}
"""By style: how a patch and the undo of a patch are prepared."""

WITH_END: Mapping[str, Callable[[PreparedPatch], PreparedPatch]] = {"goal": let_undo_end_run}
"""By style: how the undo of a patch is allowed to complete the run, where a patch can do that."""


class PatchService:
    """The patches of the runs of a store, as one caller may see and make them."""

    def __init__(self, service: RunService, code: HostCatalogue | None = None) -> None:
        """``code`` has the workflows and steps to judge with, if they are not those that this process hosts."""
        self._service = service
        self._code = code
        self.clock = service.clock

    @property
    def limits(self) -> PatchLimits:
        return self._service.patch_limits

    @property
    def definitions(self) -> Definitions:
        return self._service.store.definitions

    @property
    def hosts(self) -> Hosts | None:
        """The hosts of the store. A tenant cannot see them."""
        return getattr(self._service.store, "hosts", None)

    @property
    def catalogue(self) -> HostCatalogue | None:
        """The steps and programs to judge with: those of the host in this process, if there is one."""
        local = self._service.local
        return self._code or (local.catalogue if local is not None else None)

    @property
    def tags(self) -> WorkflowTags:
        return self._service.tags

    @property
    def compiled(self) -> CompiledDocuments:
        return self._service.compiled

    def document_context(self) -> DocumentContext:
        """Return what documents may use here."""
        from weft.graphs.load import DocumentContext  # noqa: PLC0415 - slow to import

        catalogue = self.catalogue
        return catalogue.document_context() if catalogue is not None else DocumentContext()

    def code(self, workflow: str, version: str) -> Program | None:
        """Return the code of a workflow in this process, whether or not it hosts runs."""
        known = self._code or self._service.known_code
        return code_program(known.program(workflow, version)) if known is not None else None

    async def sees_version(self, workflow: str, version: str) -> bool:
        """Return whether the one who patches may know a stored version."""
        return await sees_version(self._service, workflow, version)

    async def is_offered(self, workflow: str, version: str) -> bool:
        """Return whether a living host has this version."""
        return await is_offered(self._service, workflow, version)

    async def replay(self, row: RunRow, version: str) -> tuple[int, Replayed]:
        """Replay a code run against a version in isolation. Returns its last event too. Raises RunUnreadable."""
        program = self.code(row.workflow, version)
        assert program is not None, "it was looked up before"
        return await replay_onward(self._service, row, program)

    async def patch(self, run_id: str, patch: Mapping[str, Any], options: PatchOptions = NO_OPTIONS) -> PatchPlan:
        """Patch a run. With ``dry_run``, only return the plan, with all refusals.

        If the patch has to wait or to be reviewed, the plan has its number as ``asked``.

        Raises:
            PatchRefused: the patch does not fit the run as it stands; ``plan`` has all reasons.
            StaleBase: it was written against another version.
            BadPatch, BadGraph: the patch or the new document is not valid.
        """
        given = {**patch, "reason": options.reason} if options.reason else dict(patch)
        raw = Raw(values.encode(given, what="the patch has"))

        async def command(row: RunRow) -> tuple[c.PatchRun, PreparedPatch]:
            prepared = await self._prepare_of(row)[0](self, row, bytes(raw))
            permitted = await self._options_by_policy(row, given, prepared, options)
            return _patch_command(raw, prepared, permitted), prepared

        return await self._carry_out(run_id, command, options)

    async def undo(
        self, run_id: str, options: PatchOptions = NO_OPTIONS, *, redo: bool = False, ends: bool = False
    ) -> PatchPlan:
        """Undo the last patch of a run, or with ``redo`` the last undo. Judged like every patch.

        With ``ends``, the undo may complete a goal run.
        """

        async def command(row: RunRow) -> tuple[c.PatchRun, PreparedPatch]:
            state = await self._service.reader.state(row)
            rev = to_redo(state) if redo else to_undo(state)
            prepared = await self._prepare_of(row)[1](self, row, state, rev)
            if ends:
                prepared = self._with_end(row, prepared)
            permitted = (
                self._options_by_review_policy(row, [UNDO], options) if needs_names(self._service.policy) else options
            )
            return _patch_command(ENDS if ends else EMPTY, prepared, permitted, undoes=rev), prepared

        return await self._carry_out(run_id, command, options)

    async def _options_by_policy(
        self, row: RunRow, patch: Mapping[str, Any], prepared: PreparedPatch, options: PatchOptions
    ) -> PatchOptions:
        """Return the options with those who must agree by the policy. Raises NotAllowed."""
        if self._service.local is None:
            await self._service.policy.refresh()  # a host does this twice a second
        if not needs_names(self._service.policy):
            return options
        sources: list[Mapping[str, Any]] = [{}, {}]
        stored = await self.definitions.get(row.workflow, row.version)
        if stored is not None and is_graph(stored):
            new = prepared.definition or await self.definitions.get(row.workflow, prepared.version)
            sources = [read_graph(one).source if one is not None else {} for one in (stored, new)]
        return self._options_by_review_policy(row, operation_names(patch, *sources), options)

    def _options_by_review_policy(self, row: RunRow, names: Sequence[str], options: PatchOptions) -> PatchOptions:
        tenant = self._service.tenant or tenant_of(row.id)
        patcher = Patcher(workflow=row.workflow, tenant=tenant, user=options.by, roles=options.roles)
        asked = reviewers(self._service.policy, patcher, names)
        return msgspec.structs.replace(options, review=asked) if asked else options

    async def versions(self, run_id: str) -> list[RunVersion]:
        """Return the versions that a run has followed, oldest first, and what each of them changed."""
        return await list_run_versions(self._service, run_id)

    def _with_end(self, row: RunRow, prepared: PreparedPatch) -> PreparedPatch:
        allow = WITH_END.get(row.style)
        if allow is None:
            message = f"{row.id} does not plan, so ends says nothing."
            found = [Finding("patch.invalid", message, "ends")]
            raise BadPatch(f"The undo is not valid: {message}", hint="Leave ends out.", findings=found)
        return allow(prepared)

    def _prepare_of(self, row: RunRow) -> tuple[Prepare, PrepareUndo]:
        found = PREPARE.get(row.style)
        if found is None:
            raise unknown_command(row.id, row.style, c.PatchRun(patch=EMPTY))
        return found

    async def _carry_out(
        self,
        run_id: str,
        make: Callable[[RunRow], Awaitable[tuple[c.PatchRun, PreparedPatch]]],
        options: PatchOptions,
    ) -> PatchPlan:
        if options.at and not options.wait_ms:
            raise UsageError("A patch waits at a node only for some time.", hint='Give wait too, for example "2h".')
        values.encode([options.at, *options.review, options.by, options.reason], what="the patch has")
        key = options.key or f"patch-{self._service.ids.new()}"
        known = await self._applied_before(run_id, key) if options.key is not None else None
        if known is not None:
            return known
        for tried in range(TRIES_MAX):
            row = await self._service.row(RunId(run_id))
            _check_row(row)
            command, prepared = await make(row)
            judged, seq = await self._judge_on_copy(row, command, prepared)
            plan = judged.plan
            if options.dry_run:
                return plan
            if plan.unchanged and not options.at and not judged.is_outdated:
                _check_plan(plan, options)
                return plan
            check_review(plan, asks=options.asks, by=options.by)
            if not options.wait_ms:
                _check_plan(plan, options)
            if judged.is_outdated and not options.wait_ms:
                continue
            try:
                handed = seq if tried < HANDED_OVER_MAX else None
                ready = command if options.wait_ms else _prepared_command(command, judged, handed)
                return await self._send_patch(row, ready, plan, prepared, key)
            except PatchRefused as error:
                stale = isinstance(error, StaleBase) and not _names_base(command)
                again = error.code == "patch.moved_on" and error.plan.digest == plan.digest
                if not again and (options.expect or (error.code != "patch.moved_on" and not stale)):
                    raise
        raise Refused(f"{run_id} kept moving on while it was patched.", hint="Pause it first.", code="patch.moved_on")

    async def _applied_before(self, run_id: str, key: str) -> PatchPlan | None:
        """Return the patch that was applied under this key. Its consequences are in the log."""
        row = await self._service.row(RunId(run_id))
        known = await self._service.store.directory.key(row.uid, key)
        return await self._read_outcome(row, known.seq, key) if known is not None and known.seq else None

    async def _read_outcome(self, row: RunRow, seq: Seq, key: str) -> PatchPlan:
        """Return what became of a patch whose first event has this number."""
        stored = await self._service.store.log.events(row.uid, after=Seq(seq - 1), limit=1)
        event = e.decode(stored[0].body)
        if isinstance(event, e.PatchAsked):
            known = PatchPlan(run=row.id, base=event.base, version=event.version, undoes=event.undoes)
            return msgspec.structs.replace(known, review=event.review, asked=seq)
        if not isinstance(event, e.RunPatched):
            raise KeyReused(f'The key "{key}" was used for another command to {row.id}.')
        return PatchPlan(
            run=row.id,
            base=event.base,
            version=event.version,
            rev=event.rev,
            undoes=event.undoes,
            digest=event.digest,
            applied=True,
        )

    async def _judge_on_copy(
        self, row: RunRow, command: c.PatchRun, prepared: PreparedPatch
    ) -> tuple[JudgedPatch, int | None]:
        """Work out the plan on a copy of the run, in a thread. Also returns after which event, if that is certain."""
        reader = self._service.reader
        machine: Any = await reader.machine(row)
        # The log of a code run has been replayed already.
        past = await reader.past(row) if is_published(row.style) else []
        if prepared.definition is not None:
            reader.learn(prepared.definition, prepared.graph)
        now = max(self.clock.now_ms(), machine.state.at)
        read, limit = partial(reader.read_versions, row), self.limits.patches
        inputs = DecisionInputs(self._service.store.blobs, now, past, read, patches_max=limit)
        seq = machine.state.seq if len(past) == machine.state.seq else None
        local = self._service.local
        in_thread = local.in_thread if local is not None else None  # a process without runs has nothing else to do
        judged = await inputs.decided(lambda env: _judge_as_run(machine, command, env), in_thread)
        # The log has the whole id of a tenant's run, and the digest is made with that.
        plan = msgspec.structs.replace(judged.plan, run=row.id, changes=prepared.changes)
        return msgspec.structs.replace(judged, plan=plan), seq

    async def _send_patch(
        self, row: RunRow, command: c.PatchRun, plan: PatchPlan, prepared: PreparedPatch, key: str
    ) -> PatchPlan:
        """Give the patch to the run, wherever it is, and wait until it is decided."""
        service = self._service
        if prepared.definition is not None:
            await store_definition(self.definitions, prepared.definition)
            if service.local is not None:
                read = service.reader.learn(prepared.definition, prepared.graph)
                service.local.catalogue.learn(prepared.definition, read)
        await service.tell(row.id, command, key=key)
        loop = asyncio.get_running_loop()
        deadline, look_at = loop.time() + PATIENCE_SECONDS, loop.time() + LOOK_SECONDS
        while True:
            known = await service.store.directory.key(row.uid, key)
            if known is None:
                raise moved_on(plan)
            if known.seq:
                found = await self._read_outcome(row, known.seq, key)
                if found.applied and found.digest != plan.digest:
                    return found  # it has moved on, and the patch was allowed to wait
                return msgspec.structs.replace(plan, applied=found.applied, asked=found.asked)
            if loop.time() > min(look_at, deadline):
                look_at = loop.time() + LOOK_SECONDS
                if await service.patch_left_behind(row, command, key):
                    continue
                if loop.time() > deadline:
                    return await self._not_yet(row, command, plan)
            await asyncio.sleep(POLL_SECONDS)

    async def _not_yet(self, row: RunRow, command: c.PatchRun, plan: PatchPlan) -> PatchPlan:
        """Return the plan of a patch that no host has acted on, with what is known about that."""
        note = NO_HOST if await is_hosted(self._service, row) is False else NOT_YET
        notes = [*plan.notes, note if command.wait_ms else f"{note} {UNLESS_GONE_ON}"]
        return msgspec.structs.replace(plan, accepted=True, notes=notes)


def _patch_command(patch: Raw, prepared: PreparedPatch, options: PatchOptions, *, undoes: int = 0) -> c.PatchRun:
    return c.PatchRun(
        patch=patch,
        base=prepared.base,
        version=prepared.version,
        prepared=prepared.prepared,
        undoes=undoes,
        expect=options.expect,
        by=options.by,
        reason=options.reason or prepared.reason,
        approved_by=options.approved_by,
        reviewed_by=options.reviewed_by,
        asks=options.asks,
        wait_ms=options.wait_ms,
        at=options.at,
        review=options.review,
    )


def _judge_as_run(run: AnyRun, command: c.PatchRun, env: Env) -> JudgedPatch:
    """Judge a patch as its run will: also whether it can wait or be reviewed, if it must."""
    judged = judge_patch(run, command, env)
    check_asked(run, command, judged, env)
    return judged


def _prepared_command(command: c.PatchRun, judged: JudgedPatch, seq: int | None) -> c.PatchRun:
    """Return the command for a plan. If it is known for which event, the run need not work it out again."""
    worked_out = hand_over(judged, seq) if seq is not None and judged.event is not None else command.worked_out
    return msgspec.structs.replace(command, expect=judged.plan.digest, worked_out=worked_out)


def _check_row(row: RunRow) -> None:
    """Raise RunFinished or Refused if a run cannot be patched, whatever the patch says."""
    if row.status == MOVED:
        raise moved_error(row, c.PatchRun(patch=EMPTY))
    if row.status == IMPORTED:
        raise imported_error(row)
    if not row.seq:
        hint = "Patch it when a host has begun it, or cancel it and start it again."
        raise Refused(f"{row.id} has not begun, so it cannot be patched.", hint=hint, code="patch.not_begun")
    if not row.style:  # it was cancelled before a host took it up
        hint = f"Start it again under another id: weft start {row.workflow}"
        raise RunFinished(f"{row.id} never began, so it cannot be patched.", hint=hint, run_id=row.id)


def _check_plan(plan: PatchPlan, options: PatchOptions) -> None:
    """Raise PatchRefused if a patch may not be applied now, or is not the expected one."""
    if plan.refusals:
        raise patch_refused(plan)
    if options.expect and options.expect != plan.digest:
        raise moved_on(plan)


def _names_base(command: c.PatchRun) -> bool:
    patch = msgspec.json.decode(command.patch)
    return bool(patch.get("base"))
