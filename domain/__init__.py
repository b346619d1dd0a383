"""Value types of the system: frozen, typed, free of I/O."""
