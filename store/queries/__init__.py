"""Named queries, one file a subject; the only SQL of the project."""
