"""Show the policy of an installation, set a new version, and try what it says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec

from weft.agents.policy.policy_rules import PolicyRules
from weft.agents.policy.subjects import KINDS
from weft.agents.policy.verdicts import Action, Asked
from weft.cli.login import login
from weft.cli.operations import policy_operations, remote_of
from weft.cli.output import SafeText, console, print_json, print_table
from weft.cli.store_access import open_service, url_of
from weft.core.findings import did_you_mean
from weft.errors import NotFound, UsageError
from weft.runtime.policy_admin import PolicyVersion

HINT = "weft policy show [VERSION] | set FILE | test ACTION NAME"
ACTIONS: tuple[Action, ...] = get_args(Action)
STYLES = {"allow": "green", "ask": "yellow", "deny": "bold red"}


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed after ``weft policy``."""

    words: Sequence[str]
    history: bool = False
    reason: str = ""
    by: str | None = None
    who: Sequence[str] = ()
    args: str | None = None


async def act_on_policy(request: PolicyRequest, *, url: str | None, app: str | None, json: bool) -> int:
    """Carry out a command. Returns the exit code: 1 if something was tested that is denied.

    Raises UsageError, BadPolicy, NotFound, Refused.
    """
    action, *words = request.words or ["show"]
    own = _own_rules(app)
    async with open_service(url_of(url, app), create=action == "set") as service:
        policies = policy_operations(service)
        is_whole = app is not None or remote_of(service) is not None  # a server knows the rules of its program
        unseen = "" if is_whole else " in the store"
        match action, words:
            case "show", [] if request.history:
                _print_history(await policies.history(), json=json)
            case "show", [] | [_]:
                found = await policies.show(_policy_number(words[0]) if words else None)
                _print_policy(found, own, unseen, json=json)
            case "set", [file]:
                by = login() if request.by is None else request.by
                text, name = _read_policy_file(file)
                _print_set(await policies.set(text, by=by, reason=request.reason, file=name), json=json)
            case "test", [what, name]:
                verdict = await policies.test(_asked(what, name, request), own)
                if json:
                    print_json(verdict)
                else:
                    why = f"  {verdict.rule}" if verdict.rule else f"  by default: no rule{unseen} is about it"
                    of = f"  Asked: {', '.join(verdict.of)}." if verdict.of else ""
                    out = SafeText.assemble((verdict.permission, STYLES[verdict.permission]), f"{why}{of}")
                    console().print(out)
                return int(verdict.permission == "deny")
            case _:
                raise UsageError(f"weft policy {' '.join(request.words)} is not a command.", hint=HINT)
    return 0


def _own_rules(app: str | None) -> PolicyRules | None:
    """Return the policy of the app that the command names. Raises BadPolicy."""
    if app is None:
        return None
    from weft.cli.app_file import load_app

    return load_app(app, "weft policy").app.registered.policy.read()


def _policy_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{text!r} is not the number of a version.", hint=HINT)
    return int(text)


def _read_policy_file(file: str) -> tuple[str, str]:
    if file == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(file).read_text("utf-8"), Path(file).name
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", code="policy.no_file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8.", code="policy.yaml") from None


def _asked(action: str, name: str, request: PolicyRequest) -> Asked:
    """Return what the policy is asked. Raises UsageError."""
    known = next((one for one in ACTIONS if one == action), None)
    if known is None:
        near = did_you_mean(action, ACTIONS) or f"The actions are {', '.join(ACTIONS)}."
        raise UsageError(f"There is no action {action!r}.", hint=near)
    fields: dict[str, Any] = {}
    roles: list[str] = []
    for who in request.who:
        kind, colon, subject = who.partition(":")
        if not colon or kind not in KINDS:
            raise UsageError(f"--as {who} is not one of {', '.join(f'{one}:NAME' for one in KINDS)}.")
        if kind == "role":
            roles.append(subject)
        else:
            fields[kind] = subject
    try:
        args = msgspec.json.decode(request.args or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"--args is not a JSON object: {error}.", hint="""Write --args '{"cents": 5000}'.""") from None
    return Asked(action=known, name=name, args=args, roles=tuple(roles), **fields)


def _print_policy(found: PolicyVersion, own: PolicyRules | None, unseen: str, *, json: bool) -> None:
    program = [str(rule) for rule in (*own.rules, *own.limits)] if own is not None else list(found.program)
    if json:
        print_json(msgspec.structs.replace(found, program=program))
        return
    if not found.version:
        console().print(f"No policy is set{unseen}. Everything has its default; to set one: weft policy set FILE")
    else:
        print(f"# {_title(found)}")
        print(found.text.rstrip("\n"))
    if unseen:
        console().print("# The rules of a program: --app FILE")
    if program:
        print("# From the program:")
        for rule in program:
            print(f"#   {rule}")


def _print_history(found: Sequence[PolicyVersion], *, json: bool) -> None:
    if json:
        print_json({"versions": list(found)})
        return
    rows = [(str(one.version), _policy_time(one), one.by, f"{len(one.rules)} rules", one.reason) for one in found]
    print_table(console(), ("VERSION", "SET", "BY", "RULES", "REASON"), rows)


def _print_set(made: PolicyVersion, *, json: bool) -> None:
    if json:
        print_json(made)
    else:
        print(f"version {made.version} of the policy holds; every host obeys it within a second")


def _title(found: PolicyVersion) -> str:
    by = f" by {found.by}" if found.by else ""
    why = f": {found.reason}" if found.reason else ""
    return f"version {found.version}, set {_policy_time(found)}{by}{why}"


def _policy_time(found: PolicyVersion) -> str:
    return f"{datetime.fromtimestamp(found.at / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
