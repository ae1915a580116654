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
                    "slurmstepd: error: *** JOB 7518 ON node12 CANCELLED AT 2024-03-01T04:12:31 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
                ),
            ),
            says(
                "NODE_FAIL",
                ("slurm 23.02, scontrol show job", "   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)"),
            ),
            says(
                "Kernel panic", ("Linux 3.2", "[ 7320.364127] Kernel panic - not syncing: Fatal exception in interrupt")
            ),
            says(
                "system is going down for (?:reboot|power)",
                ("systemd 219", "The system is going down for reboot at Sat 2018-05-12 11:28:38 CST!"),
            ),
            says("-- Boot [0-9a-f]{20,}", ("systemd 252, journalctl", "-- Boot 6f2a8bd1c1a44b7f9e6f0c8d6f5b1e37 --")),
        ),
        rule(
            0.45,
            says("BUG: soft lockup", ("Linux 5.18", "watchdog: BUG: soft lockup - CPU#3 stuck for 21s! [python:4749]")),
            says(
                r"rcu_\w+ (?:self-)?detected stall",
                ("Linux 6.1", "[ 1951.906997] rcu: INFO: rcu_sched self-detected stall on CPU"),
            ),
        ),
        # sinfo cuts a reason off after 20 characters
        rule(
            0.85,
            says(
                r"[Nn]ode unexpectedly re(?:\s|$)",
                ("slurm 23.02, sinfo -R", "Node unexpectedly re slurm     2026-07-17T00:46:10 dgx[01,04]"),
            ),
            says(
                "[Uu]nexpected(?:ly)? (?:reboot|power (?:loss|off|cycle|outage))",
                (
                    "slurm slurm-25-05-0-1",
                    "slurmctld: error: validate_node_specs: Node node07 unexpectedly rebooted boot_time=1709266351 last response=1709262704",
                ),
            ),
            says(
                "rebooted without cleanly shutting down",
                (
                    "Windows 10, event 41",
                    "The system has rebooted without cleanly shutting down first. This error could be caused if the system stopped responding, crashed, or lost power unexpectedly.",
                ),
            ),
        ),
        rule(
            0.7,
            says("-- Reboot --", ("systemd 229, journalctl", "-- Reboot --")),
            says("hard LOCKUP", ("Linux 4.13", "[ 1139.392042] NMI watchdog: Watchdog detected hard LOCKUP on cpu 27")),
            says(
                "node .{0,60}marked (?:as )?dead",
                ("ray ray-0.7.0", "Node is marked as dead by GCS as it's already shutting down."),
            ),
        ),
    ),
)
