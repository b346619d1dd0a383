"""The HTTP API: a thin layer over what the commands and the app call. One router a file."""
