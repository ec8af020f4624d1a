"""Counts to a vocabulary: what the merges begin with, the loop that makes them, the states that it keeps."""
