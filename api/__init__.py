"""The HTTP API: a thin layer over the functions that commands and app call too."""
