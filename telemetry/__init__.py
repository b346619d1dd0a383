"""What Homer reports of itself: logs, spans and metrics, without content."""

import logging

# Until ``telemetry.logs`` sets the log up, no record goes anywhere: handlers of the root logger
# would print what an error says.
logging.getLogger("homer").addHandler(logging.NullHandler())
logging.getLogger("homer").propagate = False
