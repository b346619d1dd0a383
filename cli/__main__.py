"""``python -m cli`` is ``homer``."""

from cli.main import main

main()
