"""Signals: one way each to score how relevant cells are; pure functions over small arrays."""
