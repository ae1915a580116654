"""Something else that is finite: disk, open files, processes, ports."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, flatten, rules

NO_SPACE = (
    r"\[Errno 28\]|No space left on device|\[Errno 122\]|Disk quota exceeded|StorageFull|errno = 28|Quota exceeded"
    r"|not enough (?:free )?(?:disk )?space|disk is full|ENOSPC|Insufficient disk space"
)
CUT_SHORT = r"file write failed|failed writing file|\d+ requested and \d+ written|wrote (?:only )?\d+ (?:\w+ )?(?:instead )?of \d+|\b[Ss]hort write\b"
NO_THREADS = (
    r"can't start new thread|pthread_create\(?\)?[^\n]{0,60}(?:failed|temporarily unavailable)|RLIMIT_NPROC \d+ current|fork rejected by pids controller|Thread creation failed|fork[^\n]{0,60}temporarily unavailable"
    r"|creation via pthread_create|std::system_error[\s\S]{0,80}Resource temporarily unavailable"
    r"|unable to allocate necessary resources for OMP thread|unable to create new native thread"
)

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        rules(
            "disk-full",
            (0.95, NO_SPACE),
            (
                0.62,  # a file that could not be written to its end
                CUT_SHORT + r"|errno = 28\b",
            ),
            (0.45, r"unexpected pos \d+ vs|Unable to (?:flush|write)|[Ww]rite failed"),
        ),
        rules(
            "too-many-open-files",
            (0.96, r"\[Errno 24\]|Too many open files|EMFILE"),
            (0.88, r"received \d+ items of ancdata"),
        ),
        rules(
            "too-many-processes",
            (0.92, NO_THREADS),
            (0.85, r"\[Errno 11\]|Resource temporarily unavailable", "BlockingIOError OSError system_error"),
        ),
        rules(
            "port-in-use",
            (
                0.95,
                r"Address already in use|EADDRINUSE|\[Errno (?:98|48)\]|errno: 98|Only one usage of each socket|No address added out of total \d",
            ),
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        rules(
            "disk-full",
            (0.85, r"No space left on device|Disk quota exceeded|StorageFull|low on resource: ephemeral-storage"),
            (
                0.88,
                r"ephemeral (?:local )?storage (?:usage )?(?:exceeds|limit)|Usage of EmptyDir volume .{0,80}exceeds|had condition: \[DiskPressure",
            ),
            (0.6, CUT_SHORT),
            (0.45, r"inline_container.{0,40}unexpected pos \d+ vs"),
        ),
        rules("too-many-open-files", (0.85, r"Too many open files|\bEMFILE\b")),
        rules("too-many-processes", (0.9, NO_THREADS), (0.85, r"fork: (?:retry: )?Resource temporarily unavailable")),
        rules(
            "port-in-use",
            (
                0.85,
                r"Address already in use|EADDRINUSE|No address added out of total \d|failed to bind to (?:any )?.{0,60}address",
            ),
        ),
    )
)
