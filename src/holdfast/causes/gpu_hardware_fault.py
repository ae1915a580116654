from __future__ import annotations

from holdfast.causes.form import CauseRecord, Xids, rule, says, shell

CAUSE = CauseRecord(
    id="gpu-hardware-fault",
    family="gpu",
    title="The GPU has a hardware fault",
    meaning="Its memory or its own controller reported an error that software does not cause. It may work again after a reset; if it comes back, the card has to go.",
    sure="The driver's Xid number in the kernel's log, or the error counters.",
    says_more_than=("gpu-illegal-access",),
    of_the_system=True,
    recipes=(
        shell("Look at the counters", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"),
        shell("Reset the card, with nothing running on it", "sudo nvidia-smi --gpu-reset -i 0"),
        shell("Test it", "dcgmi diag -r 3"),
    ),
    exceptions=(
        rule(
            0.95,
            says(
                "uncorrectable (?:ECC|NVLink)",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
                ),
            ),
            says(
                "hardware (?:stack )?error",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.93,
            says(
                "uncorrectable (?:ECC|NVLink) error",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
                ),
            ),
            says(
                "Row Remapper",
                (
                    "NVIDIA driver 525",
                    "[430954.532443] NVRM: Xid (PCI:0000:52:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate.",
                ),
            ),
            says(
                r"double bit error \(DBE\)|DBE \(double bit",
                (
                    "NVIDIA driver 525",
                    "[430954.509105] NVRM: Xid (PCI:0000:52:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x18f31d80 partition 16, subpartition 3.",
                ),
            ),
        ),
    ),
    xids=(
        Xids((48, 94, 95, 140, 171, 172), 0.93, "uncorrectable memory error (ECC)"),
        Xids((63, 64, 156), 0.88, "memory rows, pages or other parts had to be retired or remapped"),
        Xids((46, 61, 62, 109, 110, 119, 120, 143, 158), 0.85, "the card or its own controller failed"),
        Xids((38,), 0.6, "the driver's firmware on the card failed"),
        Xids((54,), 0.9, "the card's own power connector has no power"),
        Xids((74, 136, 144, 145, 146, 147, 148, 149, 150, 155), 0.88, "NVLink error"),
        Xids((92,), 0.75, "many single-bit memory errors"),
    ),
)
