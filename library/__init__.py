"""What a user can do, once: typed functions by topic, from which every door is made."""
