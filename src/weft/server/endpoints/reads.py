"""Read the store for a command line elsewhere: rows and logs as they are stored, as far as the caller may see them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from weft.core import values
from weft.core.ids import RunUid
from weft.errors import NotAllowed, NotFound, WeftError
from weft.runtime.offered_versions import sees_version
from weft.runtime.service import RunService
from weft.server import views
from weft.server.problems import ProblemDetails, problem_of
from weft.server.request import ApiCall
from weft.server.store_reads import FORMAT, READS_MAX, ReadMethod, check_rows_together, read_methods

BLOBS_MAX = 100
"""Through how many blobs of the mail of a run a reference is looked for."""


class ReadFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has to know before it reads."""

    format: int
    """The number of the format. A client of another format must not read."""
    version: str
    """The version of Weft that answers."""
    now: views.Moment
    tenant: str
    """The tenant of the caller; empty for the operator of the whole installation."""
    kind: str
    """``sqlite``, ``postgres`` or ``memory``."""


class StoreRead(views.Form, frozen=True, kw_only=True):
    """One read: a method of a port of the store, and its arguments by name."""

    read: Annotated[str, Meta(max_length=60)]
    """Such as ``log.events``."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    run: Annotated[str, Meta(max_length=100)] = ""
    """For ``blobs.get``: the uid of the run that refers to the blob. A caller with a tenant has to say it."""


class StoreReads(views.Form, frozen=True, kw_only=True):
    """Some reads. They do not see one moment of the store: each is answered for itself."""

    reads: Annotated[list[StoreRead], Meta(min_length=1, max_length=READS_MAX)]


class ReadAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one read, or why there is none."""

    value: Any = None
    problem: ProblemDetails | None = None
    seq: int | None = None
    """Of a damaged log: the number of the event that cannot be read."""


class ReadAnswers(msgspec.Struct, frozen=True):
    """The answers, in the order of the reads."""

    answers: list[ReadAnswer]


async def read_format(call: ApiCall) -> ReadFormat:
    """Return the format of the reads, and who the caller is."""
    runs = call.services.runs
    return ReadFormat(
        format=FORMAT,
        version=version("weft"),
        now=views.required_time(runs.clock.now_ms()),
        tenant=call.identity.tenant,
        kind=(await runs.store.details()).kind,
    )


async def read_store(call: ApiCall) -> ReadAnswers:
    """Carry out reads, one after the other. A read that fails does not affect the others.

    Raises BadValue if they ask for too many rows together; then none is carried out.
    """
    reads = [_prepare(call.identity.tenant, wanted) for wanted in call.body_as(StoreReads).reads]
    check_rows_together(read.arguments for read in reads if isinstance(read, _PreparedRead))
    return ReadAnswers([await _read_answer(call, one) for one in reads])


class _PreparedRead(NamedTuple):
    """A read that can be carried out."""

    method: ReadMethod
    arguments: dict[str, Any]
    run: RunUid


def _prepare(tenant: str, wanted: StoreRead) -> _PreparedRead | WeftError:
    """Return the read with its arguments, or why it is refused."""
    try:
        method = read_methods().get(wanted.read)
        if method is None:
            raise NotFound(f"There is no read {wanted.read[:60]!r}.")
        if tenant and method.is_for_operators:
            raise NotAllowed("This concerns all tenants.", hint="Use an operator's key, which has no tenant.")
        return _PreparedRead(method, method.read_arguments(wanted.arguments), RunUid(wanted.run))
    except WeftError as error:
        return error


async def _read_answer(call: ApiCall, read: _PreparedRead | WeftError) -> ReadAnswer:
    tenant = call.identity.tenant
    try:
        if isinstance(read, WeftError):
            raise read
        if tenant:
            await _check_visible(call.service, *read)
        found = await getattr(getattr(call.service.store, read.method.port), read.method.method)(**read.arguments)
        return ReadAnswer(value=msgspec.to_builtins(found))
    except WeftError as error:
        seq = error.context.get("seq")
        return ReadAnswer(problem=problem_of(error, tenant), seq=seq if isinstance(seq, int) else None)


async def _check_visible(service: RunService, method: ReadMethod, arguments: dict[str, Any], uid: RunUid) -> None:
    """Refuse what a tenant may not see though it can name it. Raises NotFound.

    The ports of runs and tags do this themselves (``weft.runtime.tenancy``).
    """
    if method.name == "definitions.get" and not await sees_version(service, arguments["name"], arguments["version"]):
        raise NotFound(f"There is no version {arguments['version'][:60]!r} of {arguments['name'][:60]!r}.")
    if method.name == "blobs.get" and not await _refers_to(service, uid, arguments["digest"]):
        raise NotFound("No run of yours refers to this blob.")


async def _refers_to(service: RunService, uid: RunUid, digest: str) -> bool:
    """Return whether a run refers to a blob, by itself or through its blobs. A run of another tenant has no blobs."""
    log = service.store.log
    if await log.refers_to(uid, digest):
        return True
    left = {named for mail in await log.inbox(uid) for named in values.blobs_in(mail.body)}
    seen: set[str] = set()
    while left and digest not in left and len(seen) < BLOBS_MAX:
        seen.add(named := left.pop())
        left |= set(values.blobs_in(await service.store.blobs.get(named))) - seen
    return digest in left
