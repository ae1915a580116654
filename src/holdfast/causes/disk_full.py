from __future__ import annotations

from holdfast.causes.form import CauseRecord, Room, keras, near, rule, says, shell, torch, words

NO_SPACE = (
    says(
        r"\[Errno 28\]",
        (
            "CPython 3.11.7 with glibc 2.42, translated",
            "OSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar: 'model.pt'",
        ),
    ),
    says(
        "No space left on device",
        (
            "tensorflow 2.21.0",
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: /data/train.tfrecord; No space left on device",
        ),
    ),
    says(
        r"\[Errno 122\]",
        (
            "CPython 3.11.7 with glibc 2.42, translated",
            "OSError: [Errno 122] Der zugewiesene Plattenplatz (Quota) ist überschritten",
        ),
    ),
    says("Disk quota exceeded", ("CPython 3.11.7", "Disk quota exceeded.")),
    says(
        "errno = 28",
        (
            "h5py 3.14.0, translated",
            "OSError: Unable to synchronously create file (file write failed: time = Mon Nov 16 10:37:46 2026\n, filename = 'model.weights.h5', file descriptor = 3, errno = 28, error message = 'Auf dem Gerät ist kein Speicherplatz mehr verfügbar', buf = 0x55daa9d52ac8, total write size = 96, bytes this sub-write = 96, offset = 0)",
        ),
    ),
    says("Quota exceeded", ("CPython 3.11.7", "User quota exceeded.")),
    says(
        "not enough (?:free )?(?:disk )?space(?! on (?:cuda|cpu|mps|xpu))",
        near(
            "accelerate 1.15.0",
            "Not enough space on cuda:0 to put model.layers.0 and model.layers.1 (space available 1073741824, needed size 1621098496).",
        ),
        ("numpy 2.4.6", "OSError: Not enough free space to write 8000000 bytes after offset 128"),
    ),
    says("disk is full", ("CPython 3.11.7", "sqlite3.OperationalError: database or disk is full")),
)
CUT_SHORT = (
    says(
        "file write failed",
        (
            "h5py 3.14.0",
            "OSError: [Errno 28] Unable to synchronously create file (file write failed: time = Mon Nov 16 10:38:01 2026\n, filename = 'model.weights.h5', file descriptor = 4, errno = 28, error message = 'No space left on device', buf = 0x55daa9d52ac8, total write size = 96, bytes this sub-write = 96, offset = 0)",
        ),
    ),
    says(r"\d+ requested and \d+ written", ("numpy 2.4.6", "OSError: 1000000 requested and 131056 written")),
    says(
        r"wrote (?:only )?\d+ (?:\w+ )?(?:instead )?of \d+",
        ("GNU tar 1.34", "tar: checkpoints.tar: Wrote only 4096 of 10240 bytes"),
    ),
    says(r"\b[Ss]hort write\b", ("jaxlib 0.10.2", "short write: wrote")),
)
CAUSE = CauseRecord(
    id="disk-full",
    family="limits",
    title="The disk is full",
    meaning="A file could not be written because no space, quota or inode is left. What was being written is probably damaged.",
    sure="The system's own error (no space left, quota exceeded), or the file system had none left at that moment.",
    recipes=(
        words("See what fills it", "du -xh --max-depth=2 '$where' | sort -h | tail"),
        keras("Keep fewer checkpoints", 'keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True)'),
        torch(
            "Keep fewer checkpoints",
            'torch.save(state, "last.pt.tmp")\nos.replace("last.pt.tmp", "last.pt")  # one file, used again',
        ),
        shell("Write elsewhere", "df -h; df -i   # then point the output at a disk with room"),
    ),
    exceptions=(
        rule(0.95, *NO_SPACE),
        # a file that could not be written to its end
        rule(0.62, *CUT_SHORT),
        rule(
            0.45,
            says(
                r"unexpected pos \d+ vs",
                ("torch 2.13.0", "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
            ),
            says(
                "[Ww]rite failed",
                (
                    "h5py 3.14.0",
                    "OSError: [Errno 28] Unable to synchronously create file (file write failed: time = Mon Nov 16 10:38:01 2026\n, filename = 'model.weights.h5', file descriptor = 4, errno = 28, error message = 'No space left on device', buf = 0x55daa9d52ac8, total write size = 96, bytes this sub-write = 96, offset = 0)",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                "No space left on device",
                (
                    "tensorflow 2.21.0",
                    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: /data/train.tfrecord; No space left on device",
                ),
            ),
            says("Disk quota exceeded", ("CPython 3.11.7", "Disk quota exceeded.")),
            says(
                "low on resource: ephemeral-storage",
                ("Kubernetes 1.2x", "The node was low on resource: ephemeral-storage."),
            ),
        ),
        rule(
            0.88,
            says(
                "ephemeral (?:local )?storage (?:usage )?(?:exceeds|limit)",
                (
                    "kubernetes v1.38.0-alpha.0",
                    "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
                ),
            ),
            says(
                "Usage of EmptyDir volume .{0,80}exceeds",
                ("kubernetes v1.38.0-alpha.0", 'Usage of EmptyDir volume "cache" exceeds the limit "1Gi".'),
            ),
            says(
                r"had condition: \[DiskPressure",
                (
                    "Kubernetes 1.30",
                    "  Warning  Evicted    8m1s  kubelet            The node had condition: [DiskPressure].",
                ),
            ),
        ),
        rule(0.6, *CUT_SHORT),
        rule(
            0.45,
            says(
                r"inline_container.{0,40}unexpected pos \d+ vs",
                ("torch 2.13.0", "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
            ),
        ),
    ),
    ruled_out=(Room("disk[*].free_bytes", "disk[*].total_bytes", "The disk *"),),
)
