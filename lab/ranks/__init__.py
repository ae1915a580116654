"""Ranks of torchrun with one fault each, and the healthy twin: `python -m lab.ranks`."""
