"""Hand-written rules of language, by name; each states its language."""
