"""Turns arrays into domain models: frames, shots, keyframes, faces, voices, speech, screen text."""
