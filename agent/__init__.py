"""The parts that reasoning machines share: reasoners, harness, recorder, budget, state."""
