"""Read the fields that rules have in common: names, subjects and conditions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.agents.policy.rules import PermissionRule
from weft.agents.policy.subjects import EVERYBODY, KINDS, SubjectKind, Subjects
from weft.agents.policy.verdicts import Action, Permission
from weft.conditions import BadExpression, Condition, compile_condition
from weft.core.findings import did_you_mean
from weft.documents.fields import Fields

PERMISSIONS: dict[str, Permission] = {"allow": "allow", "ask": "ask", "deny": "deny"}
ASKABLE: tuple[Action, ...] = ("tool", "patch")
"""What can wait for a person."""
BOUND = ("args", "name", "agent", "workflow", "tenant", "attributes")
IN_LOOP = "spent"
"""A name that conditions about tools and models also see: what the run of the agent has spent by itself so far."""
SPENDING: tuple[Action, ...] = ("tool", "model")
AT_START = "agents"
"""A name that conditions about starts also see."""
NAMES_MAX = 1_000
CHARACTERS_MAX = 500


def read_permission(
    rule: Fields, permission: Permission, actions: Sequence[Action], version: str
) -> PermissionRule | None:
    """Read a rule with allow, ask or deny. Returns None after reporting a problem."""
    action = _action(rule, permission, actions)
    if "names" not in rule:
        rule.problems.add("missing_field", rule.at, "names is missing.", 'Write names: ["*"] for all of them.')
    names = read_texts(rule, "names")
    if "of" in rule and permission != "ask":
        rule.problems.add("bad_rule", rule.place("of"), "only a rule with ask has of.")
    of = read_texts(rule, "of")
    if permission == "ask" and action == "patch" and "of" not in rule:
        message = "of is missing: nobody is named who reviews the patch."
        rule.problems.add("missing_field", rule.at, message, 'Write of: ["team:ops"].')
    to = read_subjects(rule, "to")
    when = read_when(rule, (AT_START,) if action == "workflow" else (IN_LOOP,) if action in SPENDING else ())
    if action is None or not names:
        return None
    return PermissionRule(
        permission=permission, action=action, names=tuple(names), to=to, when=when, of=tuple(of), version=version
    )


def _action(rule: Fields, permission: Permission, actions: Sequence[Action]) -> Action | None:
    word = rule.raw[permission]
    for action in actions:
        if word == action:
            if permission == "ask" and action not in ASKABLE:
                message = f"nobody can be asked about a {action}; only {' and '.join(ASKABLE)} wait for a person."
                rule.problems.add("cannot_ask", rule.place(permission), message, "Use allow or deny.")
            return action
    near = did_you_mean(word, actions) if isinstance(word, str) else ""
    message = f"there is no action {word!r}; the actions are {', '.join(actions)}."
    rule.problems.add("unknown_action", rule.place(permission), message[:500], near)
    return None


def read_texts(rule: Fields, key: str) -> list[str]:
    """Read one text or a list of texts of reasonable size."""
    names = rule.texts(key)
    if len(names) > NAMES_MAX or any(len(name) > CHARACTERS_MAX for name in names):
        rule.wrong(key, f"at most {NAMES_MAX:,} names of at most {CHARACTERS_MAX} characters")
        return []
    if key in rule and rule.raw[key] == []:
        rule.wrong(key, "at least one name")
    return names


def read_subjects(rule: Fields, key: str) -> Subjects:
    """Read to whom a rule applies. Returns everybody if the field is absent, and after reporting a problem."""
    found: dict[SubjectKind, list[str]] = {}
    for text in read_texts(rule, key):
        word, colon, pattern = text.partition(":")
        kind = next((known for known in KINDS if known == word), None)
        if kind is None or not pattern:
            near = did_you_mean(word, KINDS) if colon else ""
            message = f'"{text[:100]}" must begin with one of {": ".join(KINDS)}: and go on with a name.'
            rule.problems.add("bad_subject", rule.place(key), message, near or 'Write "agent:support".')
            continue
        found.setdefault(kind, []).append(pattern)
    return Subjects(tuple((kind, tuple(patterns)) for kind, patterns in found.items())) if found else EVERYBODY


def read_when(rule: Fields, more: Sequence[str]) -> Condition | None:
    """Read a condition in CEL, which sees ``more`` names. Returns None without one, and after reporting a problem."""
    text = rule.text("when")
    if not text:
        return None
    at = rule.place("when")
    try:
        condition = compile_condition(text)
    except BadExpression as error:
        rule.problems.add("bad_condition", at, error.message, error.hint)
        return None
    known = (*BOUND, *more)
    for name in sorted(condition.names - set(known)):
        message = f"there is no `{name}` here; a condition sees {', '.join(known)}."
        rule.problems.add("unknown_name", at, message, did_you_mean(name, known, quote="`"))
    return condition
