"""The pages of the errors of policies, and of agents in documents: what happened, why, what to do."""

from __future__ import annotations

_CORRECT = "Correct the place that the message names. The policy that held before still holds."

POLICY_PAGES: dict[str, tuple[str, str, str]] = {
    "policy.denied": (
        "The policy does not permit this.",
        "A rule denies it, or it needs a rule that allows it and there is none. The message names the rule.",
        "weft policy show prints the rules, and weft policy test says which one decides. Administrators change them.",
    ),
    "policy.limit": (
        "A limit of the policy is reached, so nothing was started.",
        "The policy limits how many runs a tenant starts in a window of time.",
        "Start it again when the next window begins; the answer says in how many seconds (Retry-After).",
    ),
    "policy.invalid": (
        "The policy has several problems and cannot be read.",
        "Nothing in a policy is ignored: a rule that is not understood might be the one that protects you.",
        "Correct every problem that the message lists. The policy that held before still holds.",
    ),
    "policy.changed": (
        "Somebody else set the policy at the same time.",
        "A new version is written only after the version that it was made from.",
        "Look at the newest version with weft policy show, and set yours again.",
    ),
    "policy.no_file": (
        "The file of the policy cannot be read.",
        "There is no such file, or this process may not read it.",
        "Correct the path in App(policy=) or on the command line.",
    ),
    "policy.not_found": (
        "There is no such version of the policy.",
        "Versions are numbered from 1 without gaps.",
        "weft policy show --history lists them.",
    ),
    "policy.yaml": (
        "The policy is neither YAML nor JSON.",
        "The message names the line at which reading failed.",
        _CORRECT,
    ),
    "policy.not_json": (
        "The policy contains a value that JSON does not have.",
        "A policy in code is a mapping of texts, numbers, lists and mappings.",
        _CORRECT,
    ),
    "policy.too_deep": ("The policy is nested too deeply.", "A policy needs five levels at most.", _CORRECT),
    "policy.too_big": ("The policy is too big.", "A policy has at most 256 KiB.", "Use wildcards: names: [crm_*]."),
    "policy.duplicate_key": ("A field of the policy is there twice.", "Only one of them could count.", _CORRECT),
    "policy.unknown_format": (
        "The policy does not begin with weft: policy/1.",
        "The field names the format, so that a newer one is never misread.",
        "Write weft: policy/1.",
    ),
    "policy.unknown_field": (
        "A field of the policy is not known.",
        "It may be misspelt. Nothing in a policy is ignored.",
        _CORRECT,
    ),
    "policy.unknown_word": (
        "A word of the policy is not one of those that are possible here.",
        "It may be misspelt.",
        _CORRECT,
    ),
    "policy.missing_field": ("A field of a rule is missing.", "Without it the rule would say nothing.", _CORRECT),
    "policy.wrong_type": ("A value of the policy has the wrong type.", "The message says what it must be.", _CORRECT),
    "policy.bad_duration": ("A time in the policy cannot be read.", "Times are texts like 30m or 2h.", _CORRECT),
    "policy.bad_rule": (
        "A rule does not say one thing.",
        "A rule has exactly one of allow, ask, deny and limit.",
        "Write one rule for each: {deny: tool, names: [shell]}.",
    ),
    "policy.unknown_action": (
        "A rule is about an action that does not exist.",
        "The actions are tool, model, host, secret, step, workflow, route and patch.",
        _CORRECT,
    ),
    "policy.cannot_ask": (
        "A rule asks people about something that cannot wait for them.",
        "Only calls of tools and patches wait for an answer. Everything else is allowed or denied.",
        "Use allow or deny.",
    ),
    "policy.bad_subject": (
        "The policy does not say to whom a rule applies.",
        "A subject is tenant:, workflow:, agent:, node:, user: or role: and a name, which may have wildcards.",
        'Write to: ["agent:support", "tenant:*"].',
    ),
    "policy.bad_condition": (
        "The condition of a rule is not CEL.",
        "The message has the position of the error.",
        _CORRECT,
    ),
    "policy.unknown_name": (
        "The condition of a rule reads a name that is not there.",
        "Conditions see args, name, agent, workflow, tenant, attributes and spent; where runs start also agents.",
        _CORRECT,
    ),
    "graph.unknown_agent": (
        "A node of a graph names an agent that the program does not have.",
        "Agents are declared in code with app.agent. The name may be misspelt, or the file is not imported.",
        "Declare the agent, correct the name, or describe the agent in the document: agent: {model: …}.",
    ),
    "graph.bad_config": (
        "The configuration of a node, which a blob contains, does not fit.",
        "The node refers to it with config_ref, so that it is read only when the node begins.",
        "Store a correct configuration, and refer to that.",
    ),
    "policy.too_many_rules": (
        "The policy has too many rules.",
        "There are at most 1,000.",
        "Use wildcards: names: [crm_*].",
    ),
}
