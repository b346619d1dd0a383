"""What every reasoning machine shares: reasoners, harness, recorder, budget, state."""
