"""The routers of the API, one per subject."""
