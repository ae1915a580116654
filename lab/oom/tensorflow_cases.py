"""What TensorFlow on a GPU is put through: which script, how much of the card it gets, how Holdfast is started."""

from __future__ import annotations

from dataclasses import dataclass

FLOAT32 = 1e-4
UNTOUCHED = 1e-6  # the compiler chooses kernels by timing them: two bare runs need not have the same bits
HALF = 2e-2  # sixteen bits: the order of sums shows
OTHER_BY_DESIGN = 1e-1  # batch normalisation sees micro-batches


@dataclass(frozen=True)
class Case:
    """The card is as large as `limit_mb`, or that share of what the uncapped run had; else it is the whole one."""

    name: str
    variant: str = "dense"
    limit_mb: int | None = None
    share: float | None = None
    growth: bool = False
    options: tuple[str, ...] = ()  # Holdfast's
    budget_mib: int | None = None  # what they allow
    bare_dies: bool = True
    alone: bool = False  # it takes the whole card
    reference: str = ""  # the variant whose uncapped run it is compared with, where that is not its own
    has_reference: bool = True
    within: float = FLOAT32
    fits: bool = False  # nothing is to be touched
    refused: bool = False  # it cannot be cut: the error goes on, with the reason

    @property
    def compared_with(self) -> str | None:
        return (self.reference or self.variant) if self.has_reference else None


@dataclass(frozen=True)
class Ended:
    """A run of the script `steady` that is sent a signal at a step."""

    name: str
    signal: str
    at_step: int = 120
    options: tuple[str, ...] = ("--checkpoint", "1")


def _budget(mib: int) -> tuple[str, ...]:
    return ("--gpu-memory", f"{mib}MiB")


CASES: tuple[Case, ...] = (
    Case("limit-1500", limit_mb=1500),
    Case("limit-1400", limit_mb=1400),
    Case("fits", limit_mb=2600, bare_dies=False, fits=True, within=UNTOUCHED),
    Case("jit", "dense-jit", limit_mb=1500, reference="dense"),
    Case("no-jit", "dense-no-jit", limit_mb=1500, reference="dense"),
    Case("mixed-float16", "mixed-float16", share=0.85, within=HALF),
    Case("mixed-bfloat16", "mixed-bfloat16", share=0.85, within=HALF),
    Case("batch-norm", "batch-norm", share=0.8, within=OTHER_BY_DESIGN),
    Case("steps-per-execution-4", "several", share=0.85),
    # Bare it dies in spite of its `except`: what failed is still held by the traceback when the smaller one is built.
    Case("catches-itself", "catches-itself", limit_mb=1500, reference="dense"),
    Case("validation", "validation", share=0.6),
    Case("predict", "predict", share=0.6),
    Case("tape-loop", "tape-loop", limit_mb=1500, reference="dense", refused=True),
    Case("train-on-batch", "train-on-batch", limit_mb=1500, reference="dense"),
    Case("transformer", "transformer", share=0.4),
    Case("conv", "conv", share=0.4),
    Case("embedding", "embedding", share=0.8),
    Case("lstm", "lstm", share=0.5),
    Case("own-train-step", "own-train-step", limit_mb=1500),
    Case("frozen", "frozen", share=0.5),
    Case("resnet", "resnet", share=0.5, within=OTHER_BY_DESIGN),
    Case("unet", "unet", share=0.5),
    Case("gan", "gan", share=0.6, within=OTHER_BY_DESIGN),  # noise is drawn anew for each piece
    Case("autoencoder", "autoencoder", share=0.6, within=OTHER_BY_DESIGN),
    Case("text", "text", share=0.5),
    Case("several-outputs", "several-outputs", share=0.6),
    Case("contrastive", "contrastive", share=0.6, refused=True),
    Case("growth-and-budget", growth=True, options=_budget(1200), budget_mib=1200, bare_dies=False),
    Case("limit-and-budget", limit_mb=1500, options=_budget(1200), budget_mib=1200),
    Case("budget", options=_budget(1200), budget_mib=1200, bare_dies=False, alone=True),
    Case("whole-card", "whole-card", alone=True, has_reference=False),
)
ENDED: tuple[Ended, ...] = (
    Ended("killed-at-a-step", "SIGKILL"),
    Ended("terminated-and-resumed", "SIGTERM"),
)
