"""Benchmark loaders, judges and reports."""
