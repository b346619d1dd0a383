"""Skills: advice for questions of a kind, reviewed by code, routed by likeness, used and banned."""
