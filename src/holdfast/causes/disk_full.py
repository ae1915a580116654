from __future__ import annotations

from holdfast.causes.form import CauseRecord, Room, keras, rule, shell, torch, words

NO_SPACE = (
    r"\[Errno 28\]",
    "No space left on device",
    r"\[Errno 122\]",
    "Disk quota exceeded",
    "StorageFull",
    "errno = 28",
    "Quota exceeded",
    "not enough (?:free )?(?:disk )?space",
    "disk is full",
    "ENOSPC",
    "Insufficient disk space",
)
CUT_SHORT = (
    "file write failed",
    "failed writing file",
    r"\d+ requested and \d+ written",
    r"wrote (?:only )?\d+ (?:\w+ )?(?:instead )?of \d+",
    r"\b[Ss]hort write\b",
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
        rule(0.62, *CUT_SHORT, r"errno = 28\b"),
        rule(0.45, r"unexpected pos \d+ vs", "Unable to (?:flush|write)", "[Ww]rite failed"),
    ),
    lines=(
        rule(
            0.85, "No space left on device", "Disk quota exceeded", "StorageFull", "low on resource: ephemeral-storage"
        ),
        rule(
            0.88,
            "ephemeral (?:local )?storage (?:usage )?(?:exceeds|limit)",
            "Usage of EmptyDir volume .{0,80}exceeds",
            r"had condition: \[DiskPressure",
        ),
        rule(0.6, *CUT_SHORT),
        rule(0.45, r"inline_container.{0,40}unexpected pos \d+ vs"),
    ),
    ruled_out=(Room("disk[*].free_bytes", "disk[*].total_bytes", "The disk *"),),
)
