"""NaN and infinities out of an array, column by column.

The usual recipe, `np.where(np.isnan(x), np.nanmean(x, axis=0), x)`, leaves infinities where they are; and in a column that has one the
mean is itself infinite, so the NaN there become infinite, too. Take the statistic over finite values only, and replace all others.

Holdfast without this recipe: `holdfast run` names the rows and columns when the first bad batch comes, and leaves those rows
out of the step. `holdfast.data` streams files that do not fit in memory.
"""

import numpy as np


def usual(x):
    """What goes around. It is wrong."""
    return np.where(np.isnan(x), np.nanmean(x, axis=0), x)


def cleaned(x):
    finite = np.isfinite(x)
    bad = np.argwhere(~finite)
    if not finite.any(axis=0).all():
        raise ValueError(f"columns without any finite value: {np.flatnonzero(~finite.any(axis=0)).tolist()}")
    middle = np.nanmedian(np.where(finite, x, np.nan), axis=0)  # a median: one absurd value does not move it
    return np.where(finite, x, middle), bad


def main():
    x = np.random.default_rng(0).normal(size=(1000, 4)).astype("float32")
    x[3, 0], x[7, 1], x[9, 1] = np.nan, np.inf, np.nan
    with np.errstate(all="ignore"):
        left = int((~np.isfinite(usual(x))).sum())
    clean, bad = cleaned(x)
    return {"left_by_the_usual_way": left, "left": int((~np.isfinite(clean)).sum()), "replaced": bad.tolist()}


if __name__ == "__main__":
    print(main())
