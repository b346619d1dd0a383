"""Files and replies as they may come from anyone, given to the parsers that read them.

``python -m tests.fuzz`` makes mutated cases by number: the same number and seed give the same
bytes. A parser may refuse a case with one of Homer's errors; anything else is a finding.
"""
