from __future__ import annotations

from holdfast.causes.form import CauseRecord, Restart, RestartKind, rule, torch, words
from holdfast.causes.shared.recipes import BY_KIND, SMALLER_STEP

CAUSE = CauseRecord(
    id="container-memory-limit",
    family="memory",
    title="Killed at the container's memory limit",
    meaning="The machine had room, but the container, job or cgroup this ran in may use no more. Loader workers count too.",
    sure="The kernel names the cgroup, or the scheduler says that the job's own limit was passed.",
    restart=Restart(RestartKind.SMALLER_STEPS, "killed for memory"),
    ran_out="host",
    of_the_system=True,
    recipes=(
        *BY_KIND,
        words(
            "Raise the limit, if the machine has the memory",
            "docker run --memory=$twice …\n# Slurm: --mem=$twice; Kubernetes: resources.limits.memory",
        ),
        *SMALLER_STEP,
        torch("Fewer loader processes, since each has its own copy", "DataLoader(dataset, num_workers=1)"),
    ),
    lines=(
        rule(0.95, "constraint=CONSTRAINT_MEMCG"),
        rule(0.95, "Memory cgroup out of memory: Kill(?:ed)? process"),
        rule(0.94, r"\bOOMKilled\b", "OOM[- ]?Killed"),
        rule(0.93, "(?:Exceeded|exceeded) (?:its |the |job |step )?memory limit", r"exceeded memory limit \("),
        rule(0.93, "oom[-_]kill event", "cgroup out-of-memory handler", r"(?-i:\bOUT_OF_ME(?:MORY|\+))"),
        rule(
            0.93,
            "TERM_MEMLIMIT",
            r"job killed: (?:v|p)?mem [\d.]+\w* exceeded limit",
            "running beyond (?:physical|virtual) memory",
        ),
        rule(0.9, "(?:killed|terminated).{0,60}exceed(?:ed|ing) (?:the )?memory (?:limits?|request)"),
        rule(0.9, "cgroup memory limit", "memory limit of the (?:container|job)"),
        rule(0.9, r"\bcontainer oom [0-9a-f]{12}", "topic=/tasks/oom"),
        rule(0.94, r"(?:srun|slurmstepd): error: .{0,120}\b(?:Out Of Memory|OOM)\b"),
        rule(
            0.9,
            r"(?:over|exceed\w*) (?:the |its )?(?:memory limit of|hard limit .{0,20}(?:h_vmem|h_rss)|request_memory)",
        ),
        rule(0.93, "mem_cgroup_(?:oom|out_of_memory)"),
    ),
)
