"""Training: judged trajectories and an environment for TRL's GRPO."""

# It switches off what TRL would report to Hugging Face, if imported before it.
import models  # noqa: F401
