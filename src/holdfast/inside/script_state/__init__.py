"""Where a running script stands and what its variables hold, taken from outside and put back: standard library only."""
