"""Who may see the app: the password, the sign-in page, and what stands before every request."""
