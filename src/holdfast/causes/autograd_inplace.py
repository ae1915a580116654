from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, torch

CAUSE = CauseRecord(
    id="autograd-inplace",
    family="process",
    title="A value needed for the gradient was overwritten",
    meaning="An in-place operation changed a tensor that backward still needs. The same without in-place mends it.",
    sure="The message names the tensor's shape and version.",
    recipes=(
        torch("Make a new tensor", "x = x + 1  # was x += 1, x.add_(1) or x[0] = 1"),
        torch("Find the operation", "torch.autograd.set_detect_anomaly(True)"),
    ),
    exceptions=(
        rule(
            0.96,
            "modified by an in-?place operation",
            "leaf Variable that requires grad (?:is being|has been)",
            "is a view and (?:is being|its base)",
            "is being modified in-?place",
        ),
    ),
)
