"""Looking at a training job from outside: one probe a file, each listed in `listing`."""

from __future__ import annotations

from holdfast.probes.contract import Missing, Probe, Reading, Scope

__all__ = ["Missing", "Probe", "Reading", "Scope"]
