"""Authentication for the app: password, sign-in page, sessions and middleware."""
