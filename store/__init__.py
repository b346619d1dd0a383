"""The library: database and blobs."""
