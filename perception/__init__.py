"""Arrays in, domain models out: frames, shots, keyframes, faces, voices, speech, screen text."""
