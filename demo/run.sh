#!/bin/bash
# Ingests the two clips in this folder, asks an open and a multiple-choice question about them, and
# prints the next steps. A second run only asks.
set -euo pipefail
cd "$(dirname "$0")/.."
homer=.venv/bin/homer

echo "== Watching demo/ (about two minutes the first time)"
"$homer" ingest demo

echo
echo "== How many image-text pairs does the data set actually contain?"
"$homer" ask "How many image-text pairs does the data set actually contain?" --video v2d_test

echo
echo "== Which city's office is called a cultural exception? London, Paris, Berlin or Madrid?"
"$homer" ask "Which city's office is called a cultural exception?" --video googlework_short \
    --option London --option Paris --option Berlin --option Madrid

cat <<'END'

== Go on
The app in a browser:   .venv/bin/homer up
A video of yours:       .venv/bin/homer ingest FILE
                        .venv/bin/homer ask "..." --video TITLE
A stronger model:       docs/profiles.md, for example
                        .venv/bin/homer ask "..." --video TITLE --profile gemini
Stop what runs behind:  .venv/bin/homer down
END
