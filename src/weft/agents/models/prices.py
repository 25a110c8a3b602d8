"""Prices of a model. Money is counted in millionths, so a price per million tokens is a price per token."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from weft.errors import BadValue
from weft.ports.models import ModelUsage

PRICE_MAX = Decimal(1_000_000)
_EXAMPLE = 'weft.Prices("0.25", "2.00", cached="0.025")'


@dataclass(frozen=True, slots=True, init=False)
class Prices:
    """What a model costs per million tokens: of the input, of the output, and of input from the provider's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal
    currency: str

    def __init__(
        self,
        input: str | Decimal | int,
        output: str | Decimal | int,
        cached: str | Decimal | int | None = None,
        currency: str = "USD",
    ) -> None:
        """Without ``cached``, input from the cache costs as much as other input. Raises BadValue."""
        object.__setattr__(self, "input", _price("input", input))
        object.__setattr__(self, "output", _price("output", output))
        object.__setattr__(self, "cached", self.input if cached is None else _price("cached", cached))
        given: object = currency
        if not (isinstance(given, str) and len(currency) == 3 and currency.isascii() and currency.isupper()):
            raise BadValue(f"currency={currency!r} is not a currency.", hint='Write its three letters, such as "USD".')
        object.__setattr__(self, "currency", currency)

    def cost(self, usage: ModelUsage) -> int:
        """Return what a call cost, in millionths of the currency, rounded up."""
        cached = min(usage.cached, usage.input)
        exact = (usage.input - cached) * self.input + cached * self.cached + usage.output * self.output
        return int(exact.to_integral_value(ROUND_CEILING))


def _price(name: str, given: object) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, str | Decimal | int):
        raise BadValue(
            f"Prices({name}={given!r}) is not a price.", hint=f"Write it as a text, which is exact: {_EXAMPLE}."
        )
    try:
        price = Decimal(given)
    except InvalidOperation:
        price = Decimal(-1)
    if not price.is_finite() or not 0 <= price <= PRICE_MAX:
        raise BadValue(
            f"Prices({name}={given!r}) is not a price.",
            hint=f"Write what a million tokens cost, from 0 to {PRICE_MAX:,}: {_EXAMPLE}.",
        )
    return price
