from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell, torch

DISAGREE = (
    says(
        r"Mismatched (?:\w+ )?(?:data types|tensor shapes|collective|allreduce|allgather|broadcast|operations|\w+ tensor)",
        (
            "horovod 0.14",
            "FailedPreconditionError: Mismatched ALLREDUCE CPU/GPU device selection: One rank specified device GPU, but another rank specified device CPU.",
        ),
    ),
    says(
        "Detected mismatch between collectives",
        (
            "torch 2.1",
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=14370, OpType=BROADCAST, TensorShape=[38838272], TensorDtypes=BFloat16), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=14370, OpType=BROADCAST, TensorShape=[33554432], TensorDtypes=BFloat16).Collectives differ in the following aspects: \t Tensor Tensor shapes: 38838272vs 33554432",
        ),
    ),
    says(
        "expects same model across all ranks",
        (
            "torch 2.13.0",
            "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 6 params, while rank 0 has inconsistent 4 params.",
        ),
    ),
    says(
        "appears not to match (?:sizes|strides)",
        ("torch 2.13.0", "appears not to match strides of the same param in process 0."),
    ),
    says(
        "Expected to (?:have finished reduction in the prior iteration|mark a variable ready only once)",
        (
            "torch 2.13.0",
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in calculating loss. \nParameter indices which did not receive grad for rank 0: 2 3",
        ),
    ),
    says(
        "has parameters that were not used in producing the loss",
        (
            "lightning 2.5",
            "RuntimeError: It looks like your LightningModule has parameters that were not used in producing the loss returned by training_step. If this is intentional, you must enable the detection of unused parameters in DDP, either by setting the string value `strategy='ddp_find_unused_parameters_true'` or by setting the flag in the strategy with `strategy=DDPStrategy(find_unused_parameters=True)`.",
        ),
    ),
    says("Message truncated", ("Open MPI with mpi4py 3", "mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated")),
    says(r"op\.preamble\.length", ("jaxlib 0.10.2", "op.preamble.roffset + op.preamble.length <= op.buf->size_")),
    says(
        r"(?:differs?|different|inconsistent|not the same)\b.{0,60}(?:across|on all|between) (?:the )?(?:ranks|processes|workers)",
        ("torch 2.13.0", "ValueError: Inconsistent tensor metadata (including shape and stride) across ranks."),
    ),
    says(
        "Duplicate GPU detected",
        (
            "NCCL 2.14",
            "node1:4242:4242 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device db000",
        ),
    ),
    says(
        r"(?:not|must be|should be|expected to be|should have|must have) (?:identical|the same|equal|consistent)\b.{0,60}across (?:all )?(?:ranks|processes|hosts|workers)",
        ("torch 2.13.0", "Non-sharded dimensions should have identical size across ranks."),
    ),
    says(
        "sync_global_devices name mismatch",
        (
            "jax 0.10.2",
            "AssertionError: sync_global_devices name mismatch ('checkpoint_500'). Expected: 3523407757; got: 1661161023.",
        ),
    ),
    says(
        r"Bootstrap Root : (?:mismatch|rank \d+ of)",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
        ),
    ),
    says(
        "does not match the world size",
        (
            "lightning 2.6.6",
            "ValueError: You set `devices=4` and `num_nodes=2` in Lightning, but the product (4 * 2) does not match the world size (4).",
        ),
    ),
    says(
        r"mixed local \w+ device counts across ranks",
        (
            "nccl nccl4py-v0.3.1",
            "Detected mixed local CollNet device counts across ranks (min 1, max 4). Ignoring due to",
        ),
    ),
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
        rule(
            0.42,
            says(
                "NCCL error.{0,200}invalid usage",
                (
                    "torch 2.4, NCCL 2.20.5",
                    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.20.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
                ),
            ),
        ),
    ),
    lines=(rule(0.9, *DISAGREE),),
)
