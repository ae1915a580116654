"""A cleaned copy of data: what was found is imputed, clipped or left out, never in the file it was found in."""
