"""What Homer reports of itself: logs, spans and metrics, without content."""
