"""Holdfast keeps neural-network training alive, and says why it died."""

__version__ = "0.1.0"
