"""Unedited training scripts with less memory than their batch needs: `python -m lab.oom`."""
