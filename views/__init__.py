"""Read models over the store, shared by the commands, the API and the app."""
