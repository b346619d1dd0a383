"""What a call costs."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from models.profile import ChatSpec, Price

PRICES = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000


def cost_usd(spec: ChatSpec, tokens_in: int, tokens_out: int) -> float:
    """US dollars for the tokens; 0 where no price is known, and where the server is one's own."""
    price = spec.price
    if price is None and spec.base_url is None:
        price = listed().get(spec.model)
    if price is None:
        return 0.0
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


def known_models() -> frozenset[str]:
    """The models of providers that everybody may use, as profiles name them."""
    return frozenset(listed())


@cache
def listed() -> dict[str, Price]:
    """The price of each model that is listed, by ``provider:model``."""
    table = tomllib.loads(PRICES.read_text(encoding="utf-8"))
    return {
        f"{provider}:{model}": Price(**price)
        for provider, models in table.items()
        for model, price in models.items()
    }
