"""Counts some steps, then looks for a setting that is not there."""

import time

import holdfast

settings = {"batch": 32}
for step in range(30):
    time.sleep(0.05)
    holdfast.step(loss=1 / (step + 1))
print("learning rate", settings["lr"])
