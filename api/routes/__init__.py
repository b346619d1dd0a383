"""The routers of the API, each by what it is about."""
