"""The mechanism in general words, for messages nobody has seen yet: less sure than a message that is known."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, any_of, rule

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

RAISED = "ValueError TypeError RuntimeError AssertionError InvalidArgumentError IndexError XlaRuntimeError JaxRuntimeError UnimplementedError"
SHAPED = r"(?:\bshapes?\b|\bndims?\b|\bdims?\b|\bdimensions?\b|\w-dimensional\b|\b\d-?D\b|\brank[- ]\d|\brank (?:at least|at most|must|of)\b|\bchannels\b)"
NEEDS = (
    r"(?:\bmust\b|\bshould\b|\bexpect\w*|\brequires?\b|\bsupports? only|\bonly supports?|not compatible|incompatible|mismatch|n[o']t (?:equal|match|agree)"
    r"|\bdiffer|divisible|ha(?:s|ve) to be|\b[Ii]nvalid\b|\bgot\b|\b[Rr]eceived\b|\bvs\.?(?= )|too (?:small|large|few|many)|not enough|at (?:least|most))"
)
# What is said of shapes where none of the data is meant.
SET_UP = (
    r"mesh|polymorph|[Ss]harding|world.?size|process group|static|unknown|fully.?defined|(?:must|should) be (?:specified|provided|given|set)|\bfile\b"
    r"|checkpoint|state.?dict|shared memory|CUDA|cuda:|\bdevices?\b|keyword|not implemented|NotImplemented|label value|between 0 and|constraint"
    r"|tf\.Tensor\((?:True|False), shape="  # the condition of an assertion, as it is printed
)
SAVED = r"(?:checkpoints?|state.?dicts?|saved (?:weights?|model|variables?|state|optimizer)|weights? file|SavedModel)"
UNLIKE = (
    r"(?:does not (?:contain|match|resolve|exist in)|do(?:es)?n't match|did not (?:match|contain)|not (?:found|consistent|present)|mismatch|missing|contains only|was never built"
    r"|lists \d+ variables|older version|different|incompatible|could not be (?:matched|restored))"
)
NEWER = any_of(
    r"(?:requires?|needs?) [`']?\w[\w.-]{1,30}[`']? ?(?:version )?(?:[<>=~]=? ?)?v?\d+(?:\.\d+)*(?: or (?:higher|newer|above|later|greater)|\b.{0,40}(?:installed|current|found|but|got))",
    r"(?:not|un)supported (?:by|in|with) (?:this|your|the (?:current|installed)) version|created with a newer version|saved with an older version|too old of a version|version .{0,40}is too (?:old|new)",
    r"(?:is|are|was|were) not (?:installed|found on your system)|(?:to|must|should) be installed\b|[Tt]ry `?pip install|pip install [\w-]",
)

EXCEPTIONS: tuple[Rule, ...] = (
    rule(
        "shape-mismatch", 0.72, SHAPED + r".{0,160}" + NEEDS + "|" + NEEDS + r".{0,160}" + SHAPED, RAISED, unless=SET_UP
    ),
    rule(
        "dtype-mismatch",
        0.76,
        r"[Uu]nsupported d?types?\b|uniform dtype|[Ii]nconsistent dtype|[Ii]nvalid (?:input |data ?)?(?:d?type)\b.{0,40}(?:[Ee]xpected|[Rr]eceived)|float0"
        r"|dtype\b.{0,40}not (?:handled|a valid|compatible|convertible)|convertible to a tensor with dtype|(?:must|should) be (?:of )?(?:an? )?(?:integer|floating.point|numeric|"
        + NUMERIC[3:-1]
        + r")\b.{0,60}(?:got|found|received|\.$)",
        RAISED + " NotImplementedError",
        unless=r"argument `?dtype|policy|device|label",
    ),
    rule(
        "device-mismatch",
        0.85,
        r"\bCPU\b.{0,40}\bbut (?:got|found)\b.{0,30}(?:cuda|mps)\b|[Dd]evice should be \w{2,5}, got|must be on the original device|(?:same|expected) device(?: type)?\b.{0,20}\bbut (?:got|found)|Expected an? \w{2,5}(?: or \w{2,5})? device, but got",
    ),
    rule(
        "checkpoint-mismatch",
        0.76,
        SAVED + r"\b.{0,140}" + UNLIKE + "|" + UNLIKE + r".{0,140}\b" + SAVED,
        unless=r"directory|\bpath\b|No such file|version of",
    ),
    rule("dependency-conflict", 0.72, NEWER, unless=r"driver|compute capability|file|GPU"),
    rule(
        "data-exhausted",
        0.76,
        r"exhausted (?:all )?(?:its )?inputs|yield at least one (?:batch|element)|empty (?:dataset|generator|dataloader|data loader)\b|(?:dataset|data loader|dataloader) (?:is|was) empty|non-empty array or dataset",
    ),
    rule(
        "label-out-of-range",
        0.85,
        r"[Tt]arget values? should be in|values? in `?(?:target|label)s?`?: .{0,80}but expected only|labels? must be in \[0",
    ),
    rule(
        "invalid-math",
        0.68,
        r"(?:matrix|input|Cholesky|factorization|SVD|eigh?|linalg)\b.{0,80}(?:singular|not (?:positive|invertible)|could not be completed|(?:failed|did not) (?:to )?converge|ill-conditioned)|leading minor of|not positive.definite|[Cc]holesky .{0,40}(?:failed|not successful)",
    ),
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
        unless="constraint",
    ),
    rule(
        "dtype-mismatch",
        0.8,
        r"(?:dtype|data ?type|scalar type|tensor type)s?\b.{0,60}(?:mismatch|must match|do(?:es)? not match|differ|not supported|must be|should be|but (?:got|found))",
    ),
    rule(
        "dtype-mismatch",
        0.74,
        r"\b(?:same|equal|matching|different) d?types?\b(?! structure)|\bd?types? (?:must |should |to )?match\b|of dtype "
        + NUMERIC,
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
        unless=r"shared object|librar|module|attribute|dlopen|from (?:the )?checkpoint",
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
        r"\b\w+ is required to load C\+\+ extensions|\bversions?\b.{0,80}\b(?:mismatch(?:es)?|incompatib\w+|conflicts?|not compatible)",
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
