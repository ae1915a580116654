from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, torch

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
            says(
                "modified by an in-?place operation",
                (
                    "torch 2.13.0",
                    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
                ),
            ),
            says(
                "leaf Variable that requires grad (?:is being|has been)",
                (
                    "torch 2.13.0",
                    "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation.",
                ),
            ),
            says(
                "is a view and its base",
                (
                    "torch 1.10",
                    "RuntimeError: Output 0 of ReshapeAliasBackward0 is a view and its base or another view of its base has been modified inplace. This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
                ),
            ),
            says(
                "is being modified in-?place",
                (
                    "torch 2.13.0",
                    '" is using the original value of self that is being modified inplace. This would lead to wrong forward gradients. Please use "result" in the formula only.',
                ),
            ),
        ),
    ),
)
