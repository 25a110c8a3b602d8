"""Create the runs of starts, or find the runs that the same starts made before."""

from __future__ import annotations

import asyncio

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.ids import HOOK_CHAIN, Millis, RunId, RunUid, reserved_prefix
from weft.errors import IdTaken, LimitExceeded, StoreError
from weft.ports.new_run import NewRun
from weft.ports.starts import StartOutcome
from weft.ports.store import IMPORTED, MOVED, Outcome, RunRow
from weft.runtime.commit import RunCreator
from weft.runtime.finished_error import moved_to_text
from weft.runtime.hooks import FOLDER
from weft.runtime.programs import AnyProgram, input_differences, is_published
from weft.runtime.reader import goals_in
from weft.runtime.start_policy import StartPolicy
from weft.runtime.start_rules import StartKey, stored_rule
from weft.runtime.start_support import StartingService, StartOptions, StartResult
from weft.runtime.starts_by_rule import StartsByRule
from weft.runtime.typed_words import read_words_like
from weft.steps.task import CURRENT_TASK, Task

HOOK_CHAIN_MAX = 32
"""How many runs hooks may start one after the other, each because of an event of the one before."""
RETRY_SECONDS = 0.005
"""How long a start waits for another one with the same id that is in progress here."""


class Starts:
    """Creates runs: in this process, or as pending runs for any host."""

    def __init__(self, service: StartingService) -> None:
        self._service = service
        self._creator = RunCreator(service.store.log)
        self._by_rule = StartsByRule(service)
        self._policy: StartPolicy | None = None

    @property
    def answered_at(self) -> float:
        """When the store last wrote new runs, by the loop's clock."""
        return max(self._creator.answered_at, self._by_rule.answered_at)

    async def create(self, start: c.StartRun, options: StartOptions) -> StartResult:
        """Start a run, or find the one that this start made before, or the one that takes it by the workflow's rule.

        Raises BadValue for a name that no workflow can have, and IdTaken (with the differences) if the id belongs to
        another workflow or input, or always with ``existing="refuse"``; RunOpen if the rule refuses the start;
        NotAllowed and LimitExceeded if the policy does.
        """
        service = self._service
        if (task := CURRENT_TASK.get(None)) is not None:
            start = await self._from_step(start, task())
        if not start.style:
            check_name(start.workflow)  # it is not known yet whether there is such a workflow
        raw = bytes(start.input)
        # Before anything is written, and once: it may be a function of users.
        key = self._by_rule.key(start, options.rule, raw, options) if options.rule is not None else None
        kept = values.seal_inline(raw) or await service.values.keep(raw)
        if kept is not raw:
            start = msgspec.structs.replace(start, input=msgspec.Raw(kept))
        if service.local is not None and is_published(start.style):
            await service.local.publish()
        if service.local is None:
            await service.policy.refresh()  # a host does this twice a second
        if service.policy.rules is not None:
            return await self._create_permitted(start, raw, options, key)
        if key is None:
            return await self._create_or_attach(start, options)
        return await self._create_now(start, raw, options, key)

    async def _from_step(self, start: c.StartRun, task: Task) -> c.StartRun:
        """Return a start by the code of a step. If that is a hook, the start has its place in the chain.

        Raises LimitExceeded at the end of a chain.
        """
        if reserved_prefix(task.run_id) != FOLDER:
            return start
        row = await self._service.store.directory.row(RunUid(task.uid))
        before = row.attributes.get(HOOK_CHAIN) if row is not None else None
        place = before + 1 if isinstance(before, int) else 1
        if place > HOOK_CHAIN_MAX:
            raise LimitExceeded(
                f"{task.step} cannot start {start.workflow}: {HOOK_CHAIN_MAX} runs were started one after the other "
                "by hooks, each because of the one before.",
                hint="Let the hook leave out runs that hooks have started: "
                f"""@app.on(…, where="!('{HOOK_CHAIN}' in attributes)").""",
                code="limit.hook_chain",
            )
        return msgspec.structs.replace(start, attributes={**start.attributes, HOOK_CHAIN: place})

    async def _create_now(
        self, start: c.StartRun, raw: bytes, options: StartOptions, key: StartKey | None
    ) -> StartResult:
        done = await self._create_by_rule(start, raw, options, key) if key is not None else None
        return done if done is not None else await self._create_or_attach(start, options)

    async def _create_permitted(
        self, start: c.StartRun, raw: bytes, options: StartOptions, key: StartKey | None
    ) -> StartResult:
        """Start a run if the policy permits it. A start that made a run before is always answered."""
        service = self._service
        rules = service.policy.rules
        assert rules is not None, "the caller has looked"
        found = await self._find_row(start) if options.chosen else None
        if found is not None:
            return await self._attach_to_run(found, start, options.existing)
        if self._policy is None:
            self._policy = StartPolicy(service.store.policies, lambda: service.clock, self._known_program)
        counted = await self._policy.admit(msgspec.structs.replace(start, input=msgspec.Raw(raw)), rules)
        try:
            started = await self._create_now(start, raw, options, key)
        except StoreError:
            raise  # perhaps there is a run
        except BaseException:
            await self._policy.give_back(counted)
            raise
        if not started.created:
            await self._policy.give_back(counted)
        return started

    def _known_program(self, workflow: str, version: str) -> AnyProgram | None:
        catalogue = self._service.known_code
        return catalogue.program(workflow, version) if catalogue is not None else None

    async def _create_or_attach(self, start: c.StartRun, options: StartOptions) -> StartResult:
        if options.chosen:
            # Look it up first, because a run that begins here runs the user's code before the store can refuse its id.
            found = await self._find_row(start)
            if found is not None:
                return await self._attach_to_run(found, start, options.existing)
        while True:
            try:
                return await self._make_run(start, options.delay_ms)
            except IdTaken:
                found = await self._find_row(start)
            if found is not None:
                return await self._attach_to_run(found, start, options.existing)
            await self._wait_for_id(start)

    async def _create_by_rule(
        self, start: c.StartRun, raw: bytes, options: StartOptions, key: StartKey
    ) -> StartResult | None:
        """Start a run by its workflow's rule. Returns None if the stored rule is gone meanwhile."""
        rule = options.rule
        while rule is not None:
            done = await self._by_rule.start(start, rule, key, options)
            if isinstance(done, StartResult):
                return done
            if done is StartOutcome.RULE_CHANGED:
                body = await self._service.store.starts.rule(start.workflow)
                rule = stored_rule(body) if body is not None else None
                if rule is not None:
                    key = self._by_rule.key(start, rule, raw, options)
                continue
            found = await self._find_row(start)
            if found is not None:
                return await self._attach_to_run(found, start, options.existing)
            await self._wait_for_id(start)
        return None

    async def _wait_for_id(self, start: c.StartRun) -> None:
        """Wait a moment for another start with this id, which is not durable yet. Raises IdTaken."""
        if await self._service.store.retention.is_doomed(RunId(start.run_id)):
            raise IdTaken(
                f"{start.run_id} is being deleted.",
                hint="Start it again in a moment, or choose another id.",
                run_id=start.run_id,
            )
        await asyncio.sleep(RETRY_SECONDS)

    async def _find_row(self, start: c.StartRun) -> RunRow | None:
        return await self._service.store.directory.find(RunId(start.run_id))

    async def _make_run(self, start: c.StartRun, delay_ms: int) -> StartResult:
        service, run_id = self._service, RunId(start.run_id)
        begun = service.local.begin(start) if service.local is not None and not delay_ms else None
        if begun is not None:
            return StartResult(await begun, run_id, created=True)
        uid = RunUid(service.ids.new())
        now = service.clock.now_ms()
        new = NewRun(
            uid=uid,
            id=run_id,
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=now,
            attributes=start.attributes,
            start=c.encode(start),
            wake_at=Millis(now + delay_ms) if delay_ms else None,
            priority=start.priority,
        )
        if await self._creator.create(new) is Outcome.ID_TAKEN:
            raise IdTaken(f"{run_id} exists already.", run_id=run_id)
        if service.work is not None:
            service.work.on_created(new.wake_at)
        return StartResult(uid, run_id, created=True)

    async def _attach_to_run(self, row: RunRow, start: c.StartRun, existing: str) -> StartResult:
        service = self._service
        hint = "Choose another id, or omit it for a new run."
        if row.status == MOVED:
            raise IdTaken(f"{row.id} is the id of a run that was moved{moved_to_text(row)}.", hint=hint, run_id=row.id)
        if row.status == IMPORTED:
            raise IdTaken(f"{row.id} is the id of an imported run.", hint=hint, run_id=row.id)
        if existing == "refuse":
            raise IdTaken(f"{row.id} exists already.", hint=hint, run_id=row.id)
        if row.workflow != start.workflow:
            raise IdTaken(
                f"{row.id} exists as a run of {row.workflow}, not of {start.workflow}.", hint=hint, run_id=row.id
            )
        before = await service.reader.started_with(row)
        there, here = await service.values.load(bytes(before.input)), await service.values.load(bytes(start.input))
        here = read_words_like(here, start.words, there)
        if isinstance(before, c.StartRun):
            there = read_words_like(there, before.words, here)
        differences = input_differences(row.style)(there, here)
        if isinstance(start, c.StartGoal):
            goals, wanted = await service.reader.goals_of(row), goals_in(start)
            if goals and wanted and goals != wanted:
                differences = {"goals": (goals, wanted), **differences}
        if differences:
            text = values.preview_text
            changes = ", ".join(f"{k}: {text(a)} there, {text(b)} here" for k, (a, b) in differences.items())
            raise IdTaken(f"{row.id} exists with another input ({changes}).", hint=hint, run_id=row.id)
        return StartResult(row.uid, row.id, created=False)
