"""Models that users declare: the arguments of ``app.model``, checked and in the form that hosts use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from weft.agents.models.aliases import SUPPORTS, ModelAlias, check_alias, check_request_options, check_url
from weft.agents.models.prices import Prices
from weft.authoring.limits import Limit, check_declared_limit
from weft.authoring.policies import Duration, Retry, bad_policy, policy_of
from weft.core.durations import duration_ms
from weft.core.findings import did_you_mean
from weft.core.values import encode
from weft.errors import BadValue, UsageError
from weft.ports.tasks import KeyLimit
from weft.runtime.held_models import MODEL_QUEUE
from weft.steps.secrets import Secret
from weft.steps.signature import Signature

TIMEOUT_MS_MAX = 3_600_000
TOKENS_MAX = 100_000_000
SPARE_MS = 10_000
"""How much later than the call itself its task times out: a call that is too slow has a better error."""
RETRIES = Retry(4, "exponential", "1s", "30s")


class ModelOptions(TypedDict, total=False):
    """The arguments of ``app.model`` but its name and url."""

    model: str | None
    key: Secret | None
    api: str
    context: int | None
    output: int
    prices: Prices | None
    fallback: Sequence[str]
    timeout: Duration
    retries: int | Retry
    limit: Limit | None
    options: Mapping[str, Any]
    cache: Duration | bool | None
    supports: Sequence[str]


def read_alias(name: str, url: str, given: ModelOptions) -> ModelAlias:
    """Return the alias that these arguments describe. Raises BadValue, BadDuration."""
    name = check_alias(name)
    for option in given:
        if option not in ModelOptions.__annotations__:
            near = did_you_mean(option, list(ModelOptions.__annotations__))
            raise UsageError(f'app.model({name!r}) has no option "{option}".', hint=near)
    timeout_ms = duration_ms(given.get("timeout", "2m"))
    if not 0 < timeout_ms <= TIMEOUT_MS_MAX:
        raise bad_policy("timeout", given.get("timeout"), "more than 0 s and at most 1h", 'timeout="2m"')
    policy = policy_of(retries=given.get("retries", RETRIES), effect="idempotent", queue=MODEL_QUEUE + name)
    return ModelAlias(
        name=name,
        url=check_url(name, url),
        model=_model_text("model", given.get("model")) or name,
        key=_model_key(given.get("key")),
        api=_model_text("api", given.get("api")) or "chat",
        context=_model_count("context", given.get("context")),
        output=_model_count("output", given.get("output", 4_096)) or 4_096,
        prices=_prices(given.get("prices")),
        fallback=_names("fallback", given.get("fallback", ()), name),
        timeout_ms=timeout_ms,
        policy=msgspec.structs.replace(policy, timeout_ms=timeout_ms + SPARE_MS),
        limit=_limit(name, given.get("limit")),
        options=_options(given.get("options", {})),
        cache_ms=_cache_ms(given.get("cache")),
        supports=_supports(given.get("supports", SUPPORTS)),
    )


def _model_text(name: str, given: object) -> str:
    if given is not None and (not isinstance(given, str) or not given):
        raise bad_policy(name, given, "a text", f'{name}="…"')
    return given if isinstance(given, str) else ""


def _model_key(given: object) -> Secret | None:
    if given is not None and not isinstance(given, Secret):
        # The value is not shown: it may be the key itself.
        raise BadValue(
            "key= of a model is not a weft.Secret.",
            hint='A key must not be in the code: write key=weft.Secret("env:OPENAI_API_KEY").',
            code="value.secret",
        )
    return given


def _model_count(name: str, given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 0 < given <= TOKENS_MAX:
        raise bad_policy(name, given, "a number of tokens", f"{name}=4096")
    return given


def _prices(given: object) -> Prices | None:
    if given is not None and not isinstance(given, Prices):
        raise bad_policy("prices", given, "a weft.Prices", 'prices=weft.Prices("0.25", "2.00")')
    return given


def _names(name: str, given: object, own: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise bad_policy(name, given, "a list of models", f'{name}=["local"]')
    names = tuple(check_alias(one) for one in given)
    if own in names:
        raise BadValue(f"The model {own} is its own fallback.", hint="Name other models, or none.")
    return names


def _options(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise bad_policy("options", given, "a mapping", 'options={"temperature": 0}')
    encode(given, what="options= of a model has")
    check_request_options("a model", given)
    return dict(given)


def _supports(given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(one in SUPPORTS for one in given):
        raise bad_policy("supports", given, f"a list of {', '.join(SUPPORTS)}", 'supports=["tools"]')
    return tuple(one for one in SUPPORTS if one in given)


def _cache_ms(given: Duration | bool | None) -> int | None:  # noqa: FBT001 - users write ``cache=True``
    if given is None or given is False:
        return None
    return 0 if given is True else duration_ms(given)


def _limit(name: str, given: object) -> KeyLimit | None:
    declared = check_declared_limit(f"the model {name}", given, _NO_PARAMETERS)
    if declared is None:
        return None
    if declared.limit.key or declared.limit.by_code:
        raise BadValue(
            f"The limit of the model {name} has a key.", hint="It holds for all calls of the model. Remove the key."
        )
    return declared.limit


def _nothing() -> None:
    """Take no arguments."""


_NO_PARAMETERS = Signature.of(_nothing)
