"""The guard: a small process that reacts when memory runs out, within hundredths of a second.

It is none of the watcher's threads: a watcher that waits for a page while it holds Python's lock would stop them all.
"""
