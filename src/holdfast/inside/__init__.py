"""What runs in the user's process. Standard library only, Python 3.9 and later; never raises, never blocks.

It is loaded by file path under the name `holdfast_inside`, once a framework is imported, so that nothing of ours is on
the user's path.
"""
