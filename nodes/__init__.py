"""One step of a reasoning machine a file: state in, state update out."""
