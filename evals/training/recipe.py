"""The recipe of the training: the paper's constants, and what TRL calls them."""

from __future__ import annotations

from typing import Any

from pydantic import Field, PositiveInt

from domain.base import Frozen


class Recipe(Frozen):
    """Group relative policy optimisation (GRPO) with the constants of the paper.

    ``group`` completions are made of each prompt, and ``batch`` go into one optimiser step. ``kl``
    weighs the divergence from the reference model; 0: there is none. ``right`` is the reward of a
    right final answer; any other has 0.
    """

    group: PositiveInt = 8
    kl: float = Field(default=0.0, ge=0)
    learning_rate: float = Field(default=1e-6, gt=0)
    warmup_steps: int = Field(default=5, ge=0)
    batch: PositiveInt = 64
    right: float = 1.0

    def grpo_arguments(self) -> dict[str, Any]:
        """Return the arguments of TRL's ``GRPOConfig``: the rest is TRL's default.

        One group is on the device at a time; advantages are normalised by mean and deviation of
        the group (Shao et al., 2024, section 4.1.2).
        """
        return {
            "num_generations": self.group,
            "beta": self.kl,
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "per_device_train_batch_size": self.group,
            "gradient_accumulation_steps": self.batch // self.group,
            "loss_type": "grpo",
            "scale_rewards": "group",
        }
