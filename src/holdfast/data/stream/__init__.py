"""Batches of data that need not fit in memory, for NumPy, tf.data and PyTorch."""
