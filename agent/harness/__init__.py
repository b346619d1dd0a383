"""The harness around every reasoner: inform, constrain, verify, correct."""
