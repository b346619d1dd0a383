"""Hand-written rules of language, by name; each says which language it knows."""
