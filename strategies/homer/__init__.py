"""The HOMER strategy: a planner, a task ledger and four retrieval modes."""
