"""EventMemAgent: a short-term memory of 32 frames in events, and a long-term one of events."""
