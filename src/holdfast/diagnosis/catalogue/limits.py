"""What else is finite: disk, descriptors, processes."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, keras, python, shell, torch, words

ENTRIES: dict[str, Entry] = {
    "disk-full": Entry(
        "The disk is full",
        "A file could not be written because no space, quota or inode is left. What was being written is probably damaged.",
        "The system's own error (no space left, quota exceeded), or the file system had none left at that moment.",
        (
            words("See what fills it", "du -xh --max-depth=2 '$where' | sort -h | tail"),
            keras("Keep fewer checkpoints", 'keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True)'),
            torch(
                "Keep fewer checkpoints",
                'torch.save(state, "last.pt.tmp")\nos.replace("last.pt.tmp", "last.pt")  # one file, used again',
            ),
            shell("Write elsewhere", "df -h; df -i   # then point the output at a disk with room"),
        ),
    ),
    "too-many-open-files": Entry(
        "Too many open files",
        "The process reached its limit of open descriptors. Files that are opened and not closed, or tensors shared between workers, use them up.",
        "The system's own error (too many open files), or the count at the limit.",
        (
            python(
                "Close what is opened",
                "with open(path) as file:  # closes it at the end of the block\n    rows = file.readlines()",
            ),
            shell("Raise the limit for this shell", "ulimit -n 65536"),
            torch(
                "Share tensors by file, not by descriptor", 'torch.multiprocessing.set_sharing_strategy("file_system")'
            ),
        ),
    ),
    "too-many-processes": Entry(
        "No more threads or processes may be started",
        "The user's, the container's or the cgroup's limit on processes and threads is reached. Frameworks start a thread per core and more for their input.",
        "Starting a thread or a process was refused by the system.",
        (
            keras(
                "Fewer threads",
                "tf.config.threading.set_intra_op_parallelism_threads(4)\ntf.config.threading.set_inter_op_parallelism_threads(2)",
            ),
            torch("Fewer threads and workers", "torch.set_num_threads(4)  # and fewer num_workers"),
            shell("Fewer threads in every library", "OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 python train.py"),
            shell("Raise the limit", "ulimit -u 65536   # container: docker run --pids-limit=4096"),
        ),
    ),
}
