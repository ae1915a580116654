from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell

CAUSE = CauseRecord(
    id="machine-went-down",
    family="process",
    title="The machine went down",
    meaning="It rebooted, lost power or froze hard while the run was going. The end of its log from before may say why.",
    sure="The boot id changed, or the scheduler or kernel says that the node failed.",
    recipes=(shell("Look at the end of the boot before", "journalctl -b -1 -e"),),
    lines=(
        rule(
            0.88,
            says(
                "DUE TO NODE FAILURE",
                (
                    "slurm slurm-25-05-0-1",
                    "*** dense ON dense CANCELLED AT dense DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
                ),
            ),
            "NODE_FAIL",
            "Kernel panic",
            "system is going down for (?:reboot|power)",
            "-- Boot [0-9a-f]{20,}",
        ),
        rule(0.45, "BUG: soft lockup", r"rcu_\w+ (?:self-)?detected stall"),
        # sinfo cuts a reason off after 20 characters
        rule(
            0.85,
            r"[Nn]ode unexpectedly re(?:boot|\s|$)",
            says(
                "[Uu]nexpected(?:ly)? (?:reboot|power (?:loss|off|cycle|outage))",
                ("slurm slurm-25-05-0-1", "dense: Node dense unexpectedly rebooted boot_time=3 last response=3"),
            ),
            "rebooted without cleanly shutting down",
            r"Kernel-Power\W.{0,60}\b41\b",
            r"\b41\b.{0,60}Kernel-Power",
        ),
        rule(
            0.7,
            "-- Reboot --",
            "hard LOCKUP",
            says(
                "node .{0,60}marked (?:as )?dead",
                ("ray ray-0.7.0", "Node is marked as dead by GCS as it's already shutting down."),
            ),
        ),
    ),
)
