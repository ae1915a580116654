from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell

CAUSE = CauseRecord(
    id="io-stall",
    family="process",
    title="It is blocked on a disk or network file system",
    meaning="A read or write does not return. The process cannot even be killed until the device answers.",
    sure="Processes in state D, pressure on I/O, and a stack in read or write; the kernel says hung task.",
    recipes=(
        shell("See who waits for I/O", "ps -eo pid,stat,wchan:30,comm | grep ' D'"),
        shell("See what the kernel says", "dmesg | grep -iE 'blocked for more|not responding|I/O error'"),
    ),
    exceptions=(
        rule(
            0.6,
            r"\[Errno 116\]",
            says("Stale (?:NFS )?file handle", ("CPython 3.11.7 with glibc", "OSError: [Errno 116] Stale file handle")),
            says(
                "Transport endpoint is not connected",
                ("CPython 3.11.7 with glibc", "OSError: [Errno 107] Transport endpoint is not connected"),
            ),
        ),
        # a dying disk, a lost mount, or one that is full
        rule(0.45, r"\[Errno 5\]", "Input/output error"),
    ),
    lines=(
        rule(0.85, r"task \S{1,40}:\d+ blocked for more than \d+ seconds", r"nfs: server \S+ not responding"),
        rule(
            0.8,
            "Lustre: .{0,300}(?:timed out for slow reply|was lost; in progress)",
            r"nfs: server \S+ (?:timed out|not responding)",
            "ceph: .{0,60}(?:hung|session lost)",
        ),
        rule(
            0.72,
            "CIFS: .{0,60}has not responded",
            r"nvme\S* .{0,60}(?:timeout, (?:aborting|reset)|controller is down)",
            r"ata\d[\d.]*: .{0,40}(?:hard resetting link|failed command)",
        ),
        rule(
            0.7, "[Rr]emounting filesystem read-only", "EXT4-fs error", r"XFS \(\S+\): .{0,60}(?:I/O error|shut ?down)"
        ),
        rule(
            0.6,
            says("Stale (?:NFS )?file handle", ("CPython 3.11.7 with glibc", "OSError: [Errno 116] Stale file handle")),
            "I/O error, dev",
            "Buffer I/O error",
            "LustreError",
        ),
    ),
)
