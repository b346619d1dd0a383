"""Judges of answers, one a file: options, open answers, moments, citations."""
