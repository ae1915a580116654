from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell, torch, words

TIMEOUT = (
    "Watchdog caught collective operation timeout",
    "collective operation timeout",
    r"ran for \d+ milliseconds before timing out",
    r"Timed out waiting \d+ms for (?:recv|send)",
    "failed to pass monitoredBarrier",
    "[Bb]arrier timed out",
    r"Ranks? [\d, ]+ failed to",
    "Timeout waiting for key",
    "Timed out receiving the shared seed",
    "stopped sending heartbeats",
    r"Timed out after \d+ seconds waiting for clients",
    "Timed out initializing process group",
    r"wait timeout after \d+ ?ms",
    "submitted to be reduced, gathered or broadcasted by subset of ranks",
    "Stalled (?:ranks|tensor)",
    "[Ss]ocket Timeout",
    r"store->get\('?\S{0,40}'?\) got error(?!: Connection)",
    r"Connected \d+/\d+ ranks",
    "NCCL.{0,60}timed ?out",
    r"NCCL \w{0,20} ?timeout (?:error|after|occurred|detected)",
    "heartbeat (?:monitor )?(?:timed out|timeout)",
    "DEADLINE_EXCEEDED",
    r"watchdog got stuck for \d+ seconds",
    "ERROR in coordination service",
    "[Cc]oordination service agent (?:is )?in error",
    "error from (?:the )?coordination service",
    r"calling /tensorflow\.CoordinationService",
    "cluster registration failed",
    "JAX distributed service detected",
    "Wait_for_all_tasks_to_register",
    r"backend initialization is taking more than [\d.]+ seconds\. Did you run your code on all",
    r"waiting for `.{0,200}` for \d+ seconds and may be stuck",
    "not all of them arrived on time",
    "[Tt]ermination timeout for .{0,200}exceeded",
    "RendezvousTimeout",
    "HorovodTimeout",
)
CAUSE = CauseRecord(
    id="collective-timeout",
    family="ranks",
    title="Ranks waited in vain for one another",
    meaning="One rank did not come to the collective operation the others were in: it is stuck, slower, or took another way. The others give up after the timeout.",
    sure="The rank that is missing, and its own last step or stack.",
    echo=True,
    recipes=(
        words("Look at the rank that did not come", "compare the last line or stack of every rank"),
        torch(
            "More patience, where one rank rightly takes longer",
            "dist.init_process_group(timeout=datetime.timedelta(hours=2))",
        ),
        shell("Let NCCL tell more", "NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py"),
    ),
    exceptions=(rule(0.86, *TIMEOUT),),
    lines=(
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        rule(0.85, *TIMEOUT),
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        rule(0.52, "watchdog thread terminated with exception"),
    ),
)
