"""Ports to models, one adapter a file, and the profiles that name a set of them."""
