"""What is done by itself, again and again: which kinds there are, when, and who carries it out."""
