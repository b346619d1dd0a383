"""The ``homer`` command."""
