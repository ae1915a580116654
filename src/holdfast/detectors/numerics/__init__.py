"""Sick training: what the training process tells of its model, its gradients and its first non-finite value, as causes."""
