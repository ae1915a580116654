"""The mechanism in general words, for messages nobody has seen yet: less sure than a message that is known."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, rule

TENSOR = r"(?:tensors?|arrays?|inputs?|weights?|model|parameters?|targets?|outputs?|operands?|labels?|logits|images?|batch(?:es)?)"
SAME = r"(?:must|should|need to|have to|are expected to|expected to)(?: \w+)? (?:be (?:equal|the same|identical|compatible)|match|have (?:the )?(?:same|equal|matching))"
SIZE = r"(?:shapes?|sizes?|dimensions?|dims?|ranks?|lengths?|channels|number of (?:elements|dimensions|features|channels|samples))"
# In the languages of those who report it.
PAGING_FILE = (
    r"WinError 1455|paging file is too small|页面文件太小|Auslagerungsdatei ist zu klein|fichier de pagination est (?:insuffisant|trop petit)"
    r"|archivo de paginaci[oó]n es demasiado|файл подкачки слишком мал|arquivo de paginação é muito"
)
NUMERIC = r"(?:u?int\d{1,2}|float\d{0,2}|double|half|long|bool|complex\d{0,3}|bfloat16)"
STORED = r"(?:file|archive|checkpoint|image|record|header|shard|parquet|zip|hdf5|pickle|tfrecord)"

EXCEPTIONS: tuple[Rule, ...] = (
    rule("dtype-mismatch", 0.84, r"(?<![\w-])(?:d|data |scalar |tensor )?types? mismatch", unless="device"),
    rule("shape-mismatch", 0.84, SIZE + r"\b.{0,80}" + SAME + r"|" + SAME + r"(?: \w+)? " + SIZE),
    rule(
        "shape-mismatch",
        0.84,
        r"requires?\b.{0,100}\bto (?:have (?:the )?(?:same|equal|matching)|match)\b.{0,20}" + SIZE,
    ),
    rule(
        "shape-mismatch",
        0.82,
        SIZE[:-1] + r"s?) (?:mismatch|do(?:es)? not match|don't match|are (?:different|inconsistent|incompatible))",
        unless="checkpoint|state_dict|copying a param",
    ),
    rule(
        "shape-mismatch",
        0.75,
        r"(?:expected|expects|requires?)\b.{0,60}(?:\d-?D|\d dimension|shape|channels)\b.{0,80}(?:got|received|found|but)",
    ),
    rule(
        "dtype-mismatch",
        0.8,
        r"(?:dtype|data ?type|scalar type|tensor type)s?\b.{0,60}(?:mismatch|must match|do(?:es)? not match|differ|not supported|must be|should be|but (?:got|found))",
    ),
    rule(
        "dtype-mismatch",
        0.74,
        r"\b(?:same|equal|matching|different) d?types?\b|\bd?types? (?:must |should |to )?match\b|of dtype " + NUMERIC,
        unless="device|object type",
    ),
    rule("dtype-mismatch", 0.8, r"expected " + NUMERIC + r"\b.{0,40}\b(?:got|found)\b", "TypeError"),
    rule("device-mismatch", 0.82, TENSOR + r"\b.{0,100}\b(?:same|different|wrong|another) device"),
    rule(
        "device-mismatch",
        0.88,
        r"(?:expected|on|device) '?(?:cuda|cpu|mps)(?::\d)?'?\b.{0,40}\b(?:got|found|but)\b.{0,30}(?:cuda|cpu|mps)\b",
    ),
    rule(
        "device-mismatch",
        0.84,
        r"(?:must|should|need to) (?:all )?be on (?:devices?\[|the (?:same|first) (?:device|GPU)|cuda|gpu)|\(cpu tensor\?\)",
    ),
    rule(
        "index-out-of-range",
        0.74,
        r"(?:index|indices|token ids?|ids?)\b.{0,60}\bout of (?:range|bounds)|out of (?:range|bounds)\b.{0,40}(?:index|indices)",
        unless=r"(?:list|string|tuple|pop) index|range object|iteration index",
    ),
    rule(
        "label-out-of-range",
        0.8,
        r"\b(?:labels?|class(?:es)?|target)\b.{0,60}(?:out of (?:range|bounds)|exceeds?|>= ?(?:num_classes|n_classes))",
    ),
    rule(
        "corrupt-file",
        0.84,
        STORED
        + r"\b.{0,80}\b(?:corrupt(?:ed)?|truncated|damaged|malformed|unreadable|incomplete)\b|(?:corrupt(?:ed)?|truncated|damaged) "
        + STORED,
    ),
    rule(
        "missing-file",
        0.8,
        r"(?:file|path|directory|folder|checkpoint|dataset|annotation|image|label|video)s?\b.{0,160}\b(?:not found|does not exist|doesn't exist|do not exist|is missing|cannot be found|could not be found)",
        unless=r"shared object|librar|module|attribute|dlopen",
    ),
    rule(
        "checkpoint-mismatch",
        0.8,
        r"(?:checkpoint|state.?dict|saved (?:model|weights)|pretrained)\b.{0,100}\b(?:mismatch|incompatible|do(?:es)? not match|missing keys?|unexpected keys?)",
    ),
    rule(
        "gpu-memory-exhausted",
        0.82,
        r"(?:GPU|CUDA|cuda|device|HBM|VRAM)\b.{0,60}\b(?:out of memory|OOM\b|insufficient memory|memory exhausted)",
    ),
    rule("host-memory-exhausted", 0.92, PAGING_FILE),
    rule(
        "host-memory-exhausted",
        0.6,
        r"\bout of (?:host |system |CPU )?memory\b|(?:failed|unable) to allocate (?:memory|\d)|insufficient memory",
        unless=r"GPU|CUDA|cuda|device|shared",
    ),
    rule(
        "dependency-conflict",
        0.68,
        r"\bversions?\b.{0,80}\b(?:mismatch(?:es)?|incompatib\w+|conflicts?|not compatible)",
        unless="driver|kernel version|cuDNN",
    ),
    rule(
        "network-lost",
        0.62,
        r"(?:connection|connect|socket|network)\b.{0,60}\b(?:refused|reset|timed out|lost|unreachable|aborted)",
        unless="peer",
    ),
    rule(
        "bad-input-values",
        0.6,
        r"(?:input|data|feature|column|row|label)s?\b.{0,60}\b(?:NaN|nan|non-finite|infinite|Inf)\b",
    ),
)
LINES: tuple[Rule, ...] = (
    rule("container-memory-limit", 0.93, r"mem_cgroup_(?:oom|out_of_memory)"),
    rule("host-memory-exhausted", 0.88, PAGING_FILE),
    rule("shape-mismatch", 0.6, r"(?:input|target|tensor|shape)\b.{0,40}\b(?:size|shape|dimension)s? mismatch"),
)
