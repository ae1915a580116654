from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell

CLASHES = (
    r"Initializing lib\w+[^\n]{0,80}but found [^\n]{0,60}already initialized",
    "OMP: Error #15",
    "multiple copies of the OpenMP runtime have been linked",
    "undefined symbol",
    "symbol lookup error",
    r"version `?(?:GLIBC|GLIBCXX|CXXABI)[\w.]*'? not found",
    "Symbol not found",
    "cannot enable executable stack as shared object",
    r"not defined in file \S{1,80} with link time reference",
    "static TLS block",
    "MKL FATAL ERROR",
    "MKL_THREADING_LAYER",
    "incompatible with libgomp",
    "File already exists in database",
    r"requires version [\d.]+ of the Protocol Buffer",
    r"Loaded (?:runtime )?cudnn library: [\d.]+[^\n]{0,60}but source was compiled",
    r"Found \w+ version \d+, but JAX was built against version \d",
    "cuDNN version incompatibility",
    "was compiled against .{0,60}but found runtime version",
    "CUDNN_STATUS_(?:VERSION|SUBLIBRARY_VERSION)_MISMATCH",
    "mach-o.{0,60}(?:wrong|incompatible) architecture",
    "wrong ELF class",
    "invalid ELF header",
    "multiple libomp",
    r"_ZN\d+\w{6,}",
)
CAUSE = CauseRecord(
    id="native-library-conflict",
    family="process",
    title="Two native libraries clash",
    meaning="Libraries that were built for each other's other version, or two copies of one, are loaded into the same process. They crash or refuse to work.",
    sure="The symbol, version or library that the message names.",
    message_in_title=True,
    of_the_installation=True,
    recipes=(
        shell("See what does not fit", "pip check; pip list | grep -iE 'torch|tensorflow|numpy|cuda|mkl'"),
        shell(
            "Begin with an environment of its own",
            "python -m venv fresh\n./fresh/bin/pip install -r requirements.txt",
        ),
        shell("One OpenMP only", "conda install nomkl   # or one source, pip or conda, for all"),
    ),
    exceptions=(
        rule(0.85, *CLASHES),
        rule(0.7, "dynamic module does not define (?:init|module export) function"),
        rule(0.62, r"RET_CHECK failure .{0,200}\bdnn != nullptr"),
        rule(0.72, r"DLL load failed[^\n]{0,200}specified procedure could not be found"),
        rule(
            0.6,
            r"0xC00001(?:35|39)\b",
            "-10737415(?:15|11)",
            r"DLL load failed[^\n]{0,60}_pywrap",
            "Failed to load the native TensorFlow runtime",
        ),
    ),
    lines=(
        rule(0.9, *CLASHES),
        rule(0.6, r"RET_CHECK failure .{0,200}\bdnn != nullptr", "already registered for platform"),
    ),
)
