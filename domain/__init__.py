"""The words of the system: frozen, typed, free of I/O."""
