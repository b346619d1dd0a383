"""What English sentences name and state, by rules and a lexicon."""
