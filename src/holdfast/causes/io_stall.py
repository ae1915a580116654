from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell

CAUSE = CauseRecord(
    id="io-stall",
    family="process",
    title="It is blocked on a disk or network file system",
    meaning="A read or write does not return: a device, a network file system or the other end of a connection does not answer. In state D a process cannot even be killed before that.",
    sure="Processes in state D, pressure on I/O, and a stack in read or write; the kernel says hung task.",
    restart=RestartAdvice(RestartKind.ONCE_IF_KILLED, "blocked on a disk, file system or peer"),
    recipes=(
        shell("See who waits for I/O", "ps -eo pid,stat,wchan:30,comm | grep ' D'"),
        shell("See what the kernel says", "dmesg | grep -iE 'blocked for more|not responding|I/O error'"),
    ),
    exceptions=(
        rule(
            0.6,
            says(
                r"\[Errno 116\]",
                (
                    "CPython 3.11.7 with glibc 2.36, translated",
                    "OSError: [Errno 116] Veraltete Dateizugriffsnummer (file handle)",
                ),
            ),
            says("Stale (?:NFS )?file handle", ("CPython 3.11.7 with glibc", "OSError: [Errno 116] Stale file handle")),
            says(
                "Transport endpoint is not connected",
                ("CPython 3.11.7 with glibc", "OSError: [Errno 107] Transport endpoint is not connected"),
            ),
        ),
        # a dying disk, a lost mount, or one that is full
        rule(
            0.45,
            says(
                r"\[Errno 5\]",
                ("CPython 3.11.7 with glibc 2.36, translated", "OSError: [Errno 5] Eingabe-/Ausgabefehler"),
            ),
            says(
                "Input/output error",
                (
                    "h5py 2.10",
                    "OSError: Unable to open file (file read failed: time = Thu Mar 11 08:14:26 2021\n, filename = '/mnt/fuse/GSE84465_split.h5', file descriptor = 41, errno = 5, error message = 'Input/output error', buf = 0x7ffc3c0a2e78, total read size = 8, bytes this sub-read = 8, bytes actually read = 18446744073709551615, offset = 0)",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                r"task \S{1,40}:\d+ blocked for more than \d+ seconds",
                ("Linux 5.12", "[  967.723577] INFO: task python:6024 blocked for more than 120 seconds."),
            ),
            says(
                r"nfs: server \S+ not responding",
                ("Linux 4.19", "[  207.955868] nfs: server 10.100.0.60 not responding, still trying"),
            ),
        ),
        rule(
            0.8,
            says(
                "Lustre: .{0,300}(?:timed out for slow reply|was lost; in progress)",
                (
                    "Lustre 2.15",
                    "[87904.056939] Lustre: 3389:0:(client.c:2295:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: [sent 1696590759/real 1696590759]  req@0000000044314f25 x1778912219544448/t0(0) o400->DIAS-OST0002-osc-ffff9d6153c91000@192.168.14.178@tcp",
                ),
            ),
            says(
                "ceph: .{0,60}(?:hung|session lost)",
                (
                    "Linux 5.19",
                    "<6>[15981.740583] libceph: mon2 (1)10.72.36.245:40083 session lost, hunting for new mon",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                "CIFS: .{0,60}has not responded",
                (
                    "Linux 6.7",
                    "[125524.077358] CIFS: VFS: \\\\10.0.0.8 has not responded in 180 seconds. Reconnecting...",
                ),
            ),
            says(
                r"nvme\S* .{0,60}(?:timeout, (?:aborting|reset)|controller is down)",
                ("Linux 5.17", "[61234.114220] nvme nvme0: I/O 460 QID 3 timeout, aborting"),
            ),
            says(
                r"ata\d[\d.]*: .{0,40}(?:hard resetting link|failed command)",
                ("Linux 4.15", "[14043.249534] ata1.00: failed command: READ FPDMA QUEUED"),
            ),
        ),
        rule(
            0.7,
            says(
                "[Rr]emounting filesystem read-only",
                ("Linux 3.2", "[ 5241.355176] EXT4-fs (sda3): Remounting filesystem read-only"),
            ),
            says(
                "EXT4-fs error",
                (
                    "Linux 5.4",
                    "[  391.292067] EXT4-fs error (device vdb): htree_dirblock_to_tree:1038: inode #8193: block 4251: comm ls: bad entry in directory: rec_len % 4 != 0 - offset=0, inode=0, rec_len=0, size=4096",
                ),
            ),
            says(
                r"XFS \(\S+\): .{0,60}(?:I/O error|shut ?down)",
                ("Linux 5.4", "[   96.154022] XFS (vdd): Log I/O Error Detected. Shutting down filesystem"),
            ),
        ),
        rule(
            0.6,
            says("Stale (?:NFS )?file handle", ("CPython 3.11.7 with glibc", "OSError: [Errno 116] Stale file handle")),
            says(
                "I/O error, dev",
                (
                    "Linux 5.9",
                    "blk_update_request: I/O error, dev nvme0n1, sector 32776 op 0x1:(WRITE) flags 0x3000 phys_seg 6 prio class 0",
                ),
            ),
            says(
                "Buffer I/O error",
                ("Linux 5.15", "[   10.780262] Buffer I/O error on dev nvme0n1, logical block 0, async page read"),
            ),
            says(
                "LustreError",
                (
                    "Lustre 2.15",
                    "[23952.015113] LustreError: 11-0: scratch2-OST0042-osc-ffff9d6153c91000: operation ost_write to node 10.7.42.4@o2ib failed: rc = -107",
                ),
            ),
        ),
    ),
)
