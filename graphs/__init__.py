"""The machines: wiring only, and the state they share."""
