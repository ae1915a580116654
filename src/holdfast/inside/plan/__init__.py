"""`holdfast plan` in the training process: the script's own loop on batches of several sizes, measured; no framework here."""
