from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, Room, near, rule, says, shell, torch
from holdfast.causes.shared.words import SHM

CAUSE = CauseRecord(
    id="shared-memory-exhausted",
    family="memory",
    title="/dev/shm is full",
    meaning="Loader workers and NCCL hand data over through shared memory, and there is too little of it. Docker gives 64 MB unless told otherwise.",
    sure="The error names shared memory, or a worker died of a bus error while /dev/shm was full.",
    says_more_than=("disk-full",),
    recipes=(
        shell("Give the container more", "docker run --shm-size=8g IMAGE"),
        shell("Make it larger on this machine", "sudo mount -o remount,size=8G /dev/shm"),
        torch("Pass batches another way", 'torch.multiprocessing.set_sharing_strategy("file_system")'),
    ),
    exceptions=(
        rule(
            0.96,
            says(
                "(?:insufficient|out of|raise your|allocate|creating) shared memory",
                (
                    "torch 1.7",
                    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
                ),
            ),
        ),
        rule(
            0.62,
            says(
                "unable to open shared memory object",
                (
                    "torch 1.7",
                    "RuntimeError: unable to open shared memory object </torch_52868_1950128645> in read-write mode",
                ),
            ),
        ),
        rule(
            0.96,
            says(
                r"(?:No space left|write to file|resize)[\s\S]{0,200}(?:" + SHM + ")",
                ("torch 1.0", "RuntimeError: unable to write to file </torch_31_1030151126>"),
            ),
        ),
        rule(
            0.96,
            says(
                "(?:" + SHM + r")[\s\S]{0,200}(?:No space left|Bus error)",
                (
                    "a log shown in public",
                    "7635c25c81cd:41585:41836 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
                ),
            ),
        ),
        rule(
            0.85,
            says(
                "signal: Bus error",
                (
                    "torch 2.13.0",
                    "RuntimeError: DataLoader worker (pid 8605) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
                ),
            ),
        ),
        rule(
            0.96,
            says(
                r"\[Errno 28\]",
                (
                    "CPython 3.11.7 with glibc 2.42, translated",
                    'Traceback (most recent call last):\n  File "train.py", line 6, in <module>\n    lock = mp.Lock()\n  File "/usr/lib/python3.11/multiprocessing/context.py", line 68, in Lock\n    return Lock(ctx=self.get_context())\n  File "/usr/lib/python3.11/multiprocessing/synchronize.py", line 57, in __init__\n    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar',
                ),
            ),
            says(
                "No space left",
                (
                    "torch 2.13.0",
                    'Traceback (most recent call last):\n  File "/usr/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py", line 273, in collate_tensor_fn\n    storage = elem._typed_storage()._new_shared(numel, device=elem.device)\n              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File "/usr/lib/python3.11/site-packages/torch/storage.py", line 1210, in _new_shared\n    untyped_storage = torch.UntypedStorage._new_shared(\n                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File "/usr/lib/python3.11/site-packages/torch/storage.py", line 412, in _new_shared\n    return cls._new_using_filename_cpu(size)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nRuntimeError: unable to allocate shared memory(shm) for file </torch_11798_304886214_2>: No space left on device (28)',
                ),
            ),
            frames=r"synchronize\.py|SemLock|multiprocessing/heap|shared_memory|_share_filename|_new_shared",
        ),
    ),
    lines=(
        rule(
            0.93,
            says(
                "insufficient shared memory",
                (
                    "torch 1.7",
                    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
                ),
            ),
            says(
                r"shared memory\(shm\)",
                (
                    "torch 2.13.0",
                    "RuntimeError: unable to allocate shared memory(shm) for file </torch_11621_3881498875_0>: No space left on device (28)",
                ),
            ),
            says(
                "No space left.{0,80}/dev/shm",
                (
                    "joblib 1.3 below scikit-learn",
                    "OSError: [Errno 28] No space left on device: '/dev/shm/joblib_memmapping_folder_4242_1a7c64d9e2f04c5d'",
                ),
            ),
        ),
        rule(
            0.93,
            says(
                "NCCL WARN.{0,80}(?:(?:creating|attaching to) shared memory segment|posix_fallocate failed|failed to (?:extend|create) .{0,20}(?:/dev/shm|shared memory)|Could not map /dev/shm)",
                (
                    "a log shown in public",
                    "7635c25c81cd:41585:41836 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
                ),
            ),
        ),
        rule(
            0.92,
            says(
                "/dev/shm.{0,80}(?:No space|full|(?<!might be )too small)",
                near(
                    "DeepSpeed 0.16.4",
                    "[WARNING] /dev/shm size might be too small, if running in docker increase to at least --shm-size='1gb'",
                ),
                ("coreutils 9.1", "dd: error writing '/dev/shm/x': No space left on device"),
            ),
            says(
                r"unable to (?:write|resize).{0,60}/torch_\d",
                (
                    "torch 1.13",
                    "RuntimeError: unable to write to file </torch_169035_1920244589_10>: No space left on device (28)",
                ),
            ),
        ),
        rule(
            0.61,
            says(
                r"\bBus error\b",
                (
                    "torch 1.7",
                    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
                ),
            ),
            says("总线错误", ("bash 5 with glibc 2.42, translated", "总线错误 (核心已转储)")),
            says("SIGBUS", ("torch 2.13.0", "  traceback : Signal 7 (SIGBUS) received by PID 25912")),
            says(r"exitcode\s{0,4}: -7\b", ("torch 1.13", "  exitcode  : -7 (pid: 25912)")),
        ),
    ),
    signals={signal.SIGBUS: 0.5},
    ruled_out=(Room("shm.free_bytes", "shm.total_bytes", "/dev/shm"),),
)
