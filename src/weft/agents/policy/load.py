"""Load a policy: read a file, a text or a dict into rules, or report all of its problems."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from weft.agents.policy.limits import read_limit_rule
from weft.agents.policy.policy_rules import PolicyRules
from weft.agents.policy.rule_fields import PERMISSIONS, read_permission, read_subjects
from weft.agents.policy.rules import LimitRule, PermissionRule
from weft.agents.policy.verdicts import Action
from weft.core.findings import At, Problems, did_you_mean
from weft.documents.fields import Fields
from weft.documents.source import DocumentKind, DocumentSource, read_dict, read_file, read_source
from weft.errors import BadPolicy

POLICY_DOCUMENT = DocumentKind(
    area="policy",
    format="policy/1",
    error=BadPolicy,
    items="rules",
    noun="rule",
    ids=(),
    repeated="twice",
)
RULES_MAX = 1_000
DOCUMENT = ("weft", "description", "rules", "require")
KEYS = (*PERMISSIONS, "limit")
ACTIONS: tuple[Action, ...] = get_args(Action)


class LoadedPolicy(msgspec.Struct, frozen=True):
    """A loaded policy, and the text of its document: as its author wrote it, or as JSON if it was a dict."""

    policy: PolicyRules
    text: str
    digest: str


def load_policy(source: str | Path | Mapping[str, Any]) -> LoadedPolicy:
    """Load the policy in a file, or in a dict of the same shape.

    Raises:
        BadPolicy: the document is not valid; ``context["findings"]`` lists all problems.
        NotFound: there is no such file.
    """
    if isinstance(source, Mapping):
        return _load(read_dict(source, POLICY_DOCUMENT))
    return _load(read_file(Path(source), POLICY_DOCUMENT))


def parse_policy(text: str | bytes, file: str = "", *, version: str = "") -> LoadedPolicy:
    """Load the policy in a text. Findings name ``file``, and verdicts name ``version`` as the version of the rules.

    Raises:
        BadPolicy: the document is not valid; ``context["findings"]`` lists all problems.
    """
    return _load(read_source(text, file, POLICY_DOCUMENT), version)


def _load(source: DocumentSource, version: str = "") -> LoadedPolicy:
    problems = POLICY_DOCUMENT.new_problems()
    text = source.written or msgspec.json.encode(source.data).decode()
    digest = hashlib.sha256(text.encode()).hexdigest()
    policy = _read_policy(source.data, problems, version or digest[:12])
    if problems.has_errors:
        raise source.refusal([source.finding(problem) for problem in problems.entries], name="the policy")
    return LoadedPolicy(policy, text, digest)


def _read_policy(raw: Any, problems: Problems, version: str) -> PolicyRules:
    document = Fields(raw, (), problems, DOCUMENT)
    if document.raw and document.raw.get("weft") != POLICY_DOCUMENT.format:
        if "weft" in document:
            document.wrong("weft", POLICY_DOCUMENT.format, code="unknown_format")
        else:
            document.needed(f"weft: {POLICY_DOCUMENT.format}")
    rules: list[PermissionRule] = []
    limits: list[LimitRule] = []
    for index, item in enumerate(_listed_rules(document)):
        rule = _read_rule(item, ("rules", index), problems, version)
        if isinstance(rule, PermissionRule):
            rules.append(rule)
        elif rule is not None:
            limits.append(rule)
    return PolicyRules(rules, limits, [read_subjects(required, "budget") for required in _required(document)])


def _listed_rules(document: Fields) -> list[Any]:
    items = document.raw.get("rules", [])
    if not isinstance(items, list):
        document.wrong("rules", "a list of rules")
        return []
    if len(items) > RULES_MAX:
        message = f"the policy has {len(items):,} rules; the limit is {RULES_MAX:,}."
        document.problems.add("too_many_rules", ("rules",), message, "Use wildcards: names: [crm_*].")
        return []
    return items


def _read_rule(raw: Any, at: At, problems: Problems, version: str) -> PermissionRule | LimitRule | None:
    given = [key for key in KEYS if isinstance(raw, dict) and key in raw]
    if isinstance(raw, dict) and len(given) != 1:
        message = f"a rule has exactly one of {', '.join(KEYS)}; this one has {' and '.join(given) or 'none of them'}."
        near = next((found for key in raw if (found := did_you_mean(key, KEYS))), "")
        problems.add("bad_rule", at, message, "" if given else near or "Write {deny: tool, names: [shell]}.")
        return None
    known = (given[0], "to", "when") if given == ["limit"] else (*given, "names", "to", "when", "of")
    rule = Fields(raw, at, problems, known)
    if not rule.raw:
        return None
    if given == ["limit"]:
        return read_limit_rule(rule, version)
    return read_permission(rule, PERMISSIONS[given[0]], ACTIONS, version)


def _required(document: Fields) -> list[Fields]:
    if "require" not in document:
        return []
    required = Fields(document.raw["require"], document.place("require"), document.problems, ("budget",))
    return [required] if "budget" in required else []
