"""The steps of a reasoning machine, one a file: state in, state update out."""
