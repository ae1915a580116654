from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, near, rule, says, torch, words
from holdfast.causes.shared.recipes import BY_KIND, SMALLER_STEP, STREAM_THE_FILE

CAUSE = CauseRecord(
    id="container-memory-limit",
    family="memory",
    title="Killed at the container's memory limit",
    meaning="The machine had room, but the container, job or cgroup this ran in may use no more. Loader workers count too.",
    sure="The kernel names the cgroup, or the scheduler says that the job's own limit was passed.",
    restart=RestartAdvice(RestartKind.SMALLER_STEPS, "killed for memory"),
    ran_out="host",
    of_the_system=True,
    recipes=(
        *BY_KIND,
        *STREAM_THE_FILE,
        words(
            "Raise the limit, if the machine has the memory",
            "docker run --memory=$twice …\n# Slurm: --mem=$twice; Kubernetes: resources.limits.memory",
        ),
        *SMALLER_STEP,
        torch("Fewer loader processes, since each has its own copy", "DataLoader(dataset, num_workers=1)"),
    ),
    lines=(
        rule(
            0.95,
            says(
                "constraint=CONSTRAINT_MEMCG",
                (
                    "Linux 5.14 kernel log",
                    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/ltp_19257,task_memcg=/ltp_19257,task=memcg_process,pid=19289,uid=0",
                ),
            ),
        ),
        rule(
            0.95,
            says(
                "Memory cgroup out of memory: Kill(?:ed)? process",
                (
                    "Linux 6.18 kernel log",
                    "Memory cgroup out of memory: Killed process 24012 (python3) total-vm:221356kB, anon-rss:58240kB, file-rss:6640kB, shmem-rss:0kB, UID:0 pgtables:188kB oom_score_adj:0",
                ),
            ),
        ),
        rule(
            0.94,
            says(
                "OOM[- ]?Killed",
                (
                    "Slurm 23",
                    "slurmstepd: error: Detected 1 oom_kill event in StepId=39.batch. Some of the step tasks have been OOM Killed.",
                ),
            ),
        ),
        rule(
            0.93,
            says(
                "(?:Exceeded|exceeded) (?:its |the |job |step )?memory limit",
                ("Slurm 16", "slurmstepd: error: Exceeded job memory limit"),
            ),
        ),
        rule(
            0.93,
            says(
                "oom[-_]kill event",
                (
                    "Slurm 23",
                    "slurmstepd: error: Detected 1 oom_kill event in StepId=39.batch. Some of the step tasks have been OOM Killed.",
                ),
            ),
            says(
                "cgroup out-of-memory handler",
                ("Slurm 23", "Some of your processes may have been killed by the cgroup out-of-memory handler."),
            ),
            says(
                r"(?-i:\bOUT_OF_ME(?:MORY|\+))",
                ("slurm 23.02, sacct", "39.batch          batch                  root          1 OUT_OF_ME+    0:125"),
            ),
        ),
        rule(
            0.93,
            says("TERM_MEMLIMIT", ("LSF 10", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.")),
            says(
                r"job killed: (?:v|p)?mem [\d.]+\w* exceeded limit",
                ("OpenPBS 23", "=>> PBS: job killed: vmem 4213748kb exceeded limit 4194304kb"),
            ),
            says(
                "running beyond (?:physical|virtual) memory",
                (
                    "Hadoop YARN 2",
                    "Container [pid=48338,containerID=container_1417574466181_3484_01_000043] is running beyond physical memory limits. Current usage: 1.0 GB of 1 GB physical memory used; 2.0 GB of 2.1 GB virtual memory used. Killing container.",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                "(?:killed|terminated).{0,60}exceed(?:ed|ing) (?:the )?memory (?:limits?|request)",
                (
                    "Spark 2 on YARN",
                    "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used.",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"\bcontainer oom [0-9a-f]{12}",
                (
                    "Docker 24, docker events",
                    "2024-03-05T09:12:44.318402173Z container oom 0fdb48addc82871eb34eb23a847cfd033dedd1a0a37bef2e6d9eb3870fc7ff37 (image=train:latest, name=train)",
                ),
            ),
        ),
        rule(
            0.94,
            says(
                r"(?:srun|slurmstepd): error: .{0,120}\b(?:Out Of Memory|OOM)\b",
                (
                    "Slurm 23",
                    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=25428400.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"(?<!bytes )(?:over|exceed\w*) (?:the |its )?(?:memory limit of|hard limit .{0,20}(?:h_vmem|h_rss)|request_memory)",
                near("xla 2026-08-22", "Allocating 3000 bytes exceeds the memory limit of 2000 bytes."),
                (
                    "HTCondor 9",
                    "Error from slot1_3@e327.chtc.wisc.edu: Docker job has gone over memory limit of 16384 Mb",
                ),
                ("HTCondor 8", "Job has gone over memory limit of 2048 megabytes. Peak usage: 2048 megabytes."),
            ),
        ),
        rule(
            0.93,
            says("mem_cgroup_(?:oom|out_of_memory)", ("Linux 6.18 kernel log", " mem_cgroup_out_of_memory+0xd0/0x110")),
        ),
    ),
)
