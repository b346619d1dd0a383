"""Who is who: identities, matching, characters, names, corrections and forgetting."""
