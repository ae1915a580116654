"""Data sets: audited before a run, cleaned, streamed where they do not fit in memory."""
