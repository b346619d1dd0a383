"""The MemDreamer strategy: a hierarchy of events above graphs of who does what with what."""
