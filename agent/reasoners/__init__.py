"""The reasoners, which decide for a run: a language model, or rules."""
