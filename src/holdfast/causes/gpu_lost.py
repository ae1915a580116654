from __future__ import annotations

from holdfast.causes.form import CauseRecord, Xids, rule, says, shell

CAUSE = CauseRecord(
    id="gpu-lost",
    family="gpu",
    title="The GPU fell off the bus",
    meaning="The driver cannot reach the card any more. Power, heat, the riser or the slot are the usual reasons; only a reboot brings it back.",
    sure="Xid 79, or the driver says that the GPU is lost.",
    says_more_than=("collective-timeout", "gpu-hardware-fault", "gpu-illegal-access"),
    of_the_system=True,
    recipes=(
        shell("See what the kernel says", "dmesg | grep -iE 'xid|nvrm|pcie' | tail -n 20"),
        shell("Draw less power", "sudo nvidia-smi -pl 250"),
    ),
    exceptions=(
        rule(
            0.93,
            says(
                "GPU is lost",
                (
                    "nvidia-smi 384",
                    "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU",
                ),
            ),
            says(
                "fallen off the bus",
                ("NVIDIA driver 560", "kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus."),
            ),
        ),
    ),
    lines=(
        rule(
            0.97,
            says(
                "fallen off the bus",
                ("NVIDIA driver 560", "kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus."),
            ),
            says(
                "GPU is lost",
                (
                    "nvidia-smi 384",
                    "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                "Unable to determine the device handle for GPU",
                ("nvidia-smi", "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error"),
            ),
        ),
        rule(
            0.7,
            says(
                "NVRM: .{0,80}(?:RmInitAdapter failed|Cannot attach gpu|GPU is not responding)",
                (
                    "NVIDIA driver 550.144.03",
                    "[  903.610907] NVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x65:1792)",
                ),
                (
                    "NVIDIA driver 595.71.05",
                    "May 27 16:50:10 fedora kernel: NVRM: osInitNvMapping: *** Cannot attach gpu",
                ),
            ),
        ),
    ),
    xids=(Xids((79,), 0.97, "the card has fallen off the bus"),),
)
