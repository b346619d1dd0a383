"""Visual Agentic Memory: frames that stay, as moments and events, and thin out with age."""
