"""Batches on their way from the script's data to its model, looked at in the first pass through the data."""
