"""Findings and texts -> one Diagnosis. Declared here, where it costs no import: what it reads of a run's record."""

from holdfast.fleet.first_stop import FIRST_READS
from holdfast.recorded_events import RESTORED, Exit, KeptByInput, MicroBatches, WentOn
from holdfast.windows import Reads

READS = FIRST_READS | Reads(
    latest=(
        "gpu*.job_memory_bytes", "job.silent_s", "gpu*.memory_total_bytes", "host.oom_kill_count", "train.allocated_bytes",
        "train.allocated_peak_bytes", "train.reserved_bytes", "train.steps_count",
    ),
    course=("gpu*.memory_used_bytes", "job.held_bytes", "train.epoch_count", "train.rss_bytes"),
    events=(
        Exit.KIND, "aftermath", "script.gone", "examined", "framework", "framework.loaded", "kernel.line",
        KeptByInput.KIND, "gpu.found", "gpu.lost", "gpu.others", "gpu.xid", "probe.missing", "train.batch", "train.longest", "train.phase", MicroBatches.KIND,
        "rescue.caught", "rescue.disclosed", "rescue.foreseen", "rescue.needs", "rescue.refused", "signal.received",
        "key.interrupt", RESTORED, WentOn.KIND, "data.at_failure", "numerics.setup",
    ),
    output=True,
)  # fmt: skip
