from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell, torch

DISAGREE = (
    r"Mismatched (?:\w+ )?(?:data types|tensor shapes|collective|allreduce|allgather|broadcast|operations|\w+ tensor)",
    "Detected mismatch between collectives",
    "expects same model across all ranks",
    "mismatched across ranks",
    "appears not to match (?:sizes|strides)",
    "Expected to (?:have finished reduction in the prior iteration|mark a variable ready only once)",
    "Message truncated",
    r"op\.preamble\.length",
    r"inconsistent \d+ params",
    r"(?:differs?|different|inconsistent|not the same)\b.{0,60}(?:across|on all|between) (?:the )?(?:ranks|processes|workers)",
    r"(?:must|should|expects?|expected)\b.{0,60}\bsame\b.{0,60}(?:across|on all|between) (?:the )?(?:ranks|processes|workers)",
    "Duplicate GPU detected",
    r"(?:not|must be|should be|expected to be|should have|must have) (?:identical|the same|equal|consistent)\b.{0,60}across (?:all )?(?:ranks|processes|hosts|workers)",
    "sync_global_devices name mismatch",
    r"Bootstrap Root : (?:mismatch|rank \d+ of)",
    "does not match the world size",
    r"mixed local \w+ device counts across ranks",
)
CAUSE = CauseRecord(
    id="rank-mismatch",
    family="ranks",
    title="Ranks disagree on what to reduce",
    meaning="They call different operations, or with different shapes, types or parameters. All have to do the same in the same order.",
    sure="The two sides that the message names.",
    message_in_title=True,
    recipes=(
        torch(
            "Build the same model on every rank: what sizes depend on comes from rank 0",
            "shared = [vocabulary]\ntorch.distributed.broadcast_object_list(shared, src=0)\nvocabulary = shared[0]",
        ),
        torch(
            "Some parameters get no gradient in some steps",
            "DistributedDataParallel(model, find_unused_parameters=True)",
        ),
        torch("The same number of batches on every rank", "DistributedSampler(dataset, drop_last=True)"),
        shell("See who differs", "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py"),
    ),
    exceptions=(
        rule(0.92, *DISAGREE),
        rule(0.42, "ncclInvalidUsage", "invalid usage"),
    ),
    lines=(rule(0.9, *DISAGREE),),
)
