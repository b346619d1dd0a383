"""Prices of calls."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from models.profile import IN_PROCESS, ChatSpec, Price

PRICES = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000


def cost_usd(spec: ChatSpec, tokens_in: int, tokens_out: int) -> float:
    """Return US dollars for the tokens; 0 if no price is known, or the server is one's own."""
    price = spec.price
    if price is None and spec.base_url is None:
        price = price_list().get(spec.model)
    if price is None:
        return 0.0
    return (tokens_in * price.input + tokens_out * price.output) / MILLION


def is_priced(spec: ChatSpec) -> bool:
    """Check whether the model's price is known; one's own server costs nothing."""
    own = spec.base_url is not None or spec.provider == IN_PROCESS
    return own or spec.price is not None or spec.model in price_list()


def known_models() -> frozenset[str]:
    """Return the models of public providers, as profiles name them."""
    return frozenset(price_list())


@cache
def price_list() -> dict[str, Price]:
    """Return the price of each listed model, by ``provider:model``."""
    table = tomllib.loads(PRICES.read_text(encoding="utf-8"))
    return {
        f"{provider}:{model}": Price(**price)
        for provider, models in table.items()
        for model, price in models.items()
    }
