"""Many ranks."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, shell, torch, words

AMONG_RANKS = r"(?i)nccl|gloo|\brank\b|rendezvous|rdzv|TCPStore|c10d|init_process_group|torchrun|MASTER_PORT|29500"
PORT = r"(?i)(?:port[:= ]+|:)(?P<port>[1-9]\d{3,4})\b"
DOWNLOAD = r"(?P<url>https?://[\w./%?=&~+-]+[\w/])"

ENTRIES: dict[str, Entry] = {
    "collective-timeout": Entry(
        "Ranks waited in vain for one another",
        "One rank did not come to the collective operation the others were in: it is stuck, slower, or took another way. The others give up after the timeout.",
        "The rank that is missing, and its own last step or stack.",
        (
            words("Look at the rank that did not come", "compare the last line or stack of every rank"),
            torch(
                "More patience, where one rank rightly takes longer",
                "dist.init_process_group(timeout=datetime.timedelta(hours=2))",
            ),
            shell("Let NCCL tell more", "NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py"),
        ),
    ),
    "rank-mismatch": Entry(
        "Ranks disagree on what to reduce",
        "They call different operations, or with different shapes, types or parameters. All have to do the same in the same order.",
        "The two sides that the message names.",
        (
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
    ),
    "straggler": Entry(
        "One rank is slower than the others",
        "All wait for it in every step. Its data, its GPU's clocks or its neighbours are the usual reasons.",
        "Step times per rank.",
        (
            shell(
                "Compare the cards",
                "nvidia-smi --query-gpu=index,clocks.sm,temperature.gpu,power.draw --format=csv".replace(
                    "power.draw --", "power.draw \\\n  --"
                ),
            ),
        ),
    ),
    "port-in-use": Entry(
        "The port is taken",
        "Another process listens at the address this run wants. Often an earlier run has not ended.",
        "The system's own error (address already in use).",
        (
            shell("See who has it", "ss -ltnp | grep $port", said=PORT),
            shell("See who listens where", "ss -ltnp", unsaid=PORT),
            shell("Take any free one", "torchrun --standalone --nproc-per-node=2 train.py", said=AMONG_RANKS),
            words("Ask for port 0 where it is opened: the system takes a free one", "$frame", unsaid=AMONG_RANKS),
        ),
    ),
    "network-lost": Entry(
        "The connection to another machine or server broke",
        "A rank, a rendezvous or a download server could not be reached or closed the connection. Where another rank died first, that one's error is the reason.",
        "No rank failed for a reason of its own, and the address cannot be reached.",
        (
            shell("Fetch it where there is a network, and copy it here", "curl -fLO '$url'", said=DOWNLOAD),
            shell("Can it be reached?", "nc -vz HOST 29500", unsaid=DOWNLOAD),
            shell(
                "Use the right network interface",
                "NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0 torchrun train.py",
                said=AMONG_RANKS,
            ),
            shell(
                "Work from what was downloaded before", "HF_HUB_OFFLINE=1 python train.py", said=r"(?i)hugging|hf_hub"
            ),
        ),
    ),
}
