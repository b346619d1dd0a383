"""A strategy in a folder of its own, which tests add to those of Homer."""
