"""The schema, sessions, named queries and blobs: the only SQL in the project."""
