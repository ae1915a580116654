from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell

CLASHES = (
    r"Initializing lib\w+[^\n]{0,80}but found [^\n]{0,60}already initialized",
    "OMP: Error #15",
    "multiple copies of the OpenMP runtime have been linked",
    "undefined symbol",
    says("symbol lookup error", ("glibc", "symbol lookup error")),
    r"version `?(?:GLIBC|GLIBCXX|CXXABI)[\w.]*'? not found",
    says(
        "Symbol not found", ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: named symbol not found")
    ),
    says(
        "cannot enable executable stack as shared object",
        ("glibc", "cannot enable executable stack as shared object requires"),
    ),
    r"not defined in file \S{1,80} with link time reference",
    says("static TLS block", ("glibc", "cannot allocate memory in static TLS block")),
    says(
        "MKL FATAL ERROR",
        ("torch 2.13.0", "Intel oneMKL FATAL ERROR: dynamic library dense is not convenient for this processor."),
    ),
    "MKL_THREADING_LAYER",
    "incompatible with libgomp",
    says("File already exists in database", ("jaxlib 0.10.2", "File already exists in database:")),
    r"requires version [\d.]+ of the Protocol Buffer",
    r"Loaded (?:runtime )?cudnn library: [\d.]+[^\n]{0,60}but source was compiled",
    r"Found \w+ version \d+, but JAX was built against version \d",
    says(
        "cuDNN version incompatibility",
        ("torch 2.13.0", "cuDNN version incompatibility: PyTorch was compiled  against"),
    ),
    "was compiled against .{0,60}but found runtime version",
    "CUDNN_STATUS_(?:VERSION|SUBLIBRARY_VERSION)_MISMATCH",
    "mach-o.{0,60}(?:wrong|incompatible) architecture",
    says("wrong ELF class", ("glibc", "wrong ELF class: ELFCLASS32")),
    says("invalid ELF header", ("glibc", "invalid ELF header")),
    says(
        r"\.so[\d.]{0,12}: file too short",
        ("glibc 2.36", "OSError: /home/user/project/ext.so: file too short"),
    ),
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
            says(
                "Failed to load the native TensorFlow runtime",
                (
                    "tensorflow 2.21.0",
                    "ImportError: 3\n\nFailed to load the native TensorFlow runtime.\nSee https://www.tensorflow.org/install/errors for some common causes and solutions.\nIf you need help, create an issue at https://github.com/tensorflow/tensorflow/issues and include the entire stack trace above this error message.",
                ),
            ),
        ),
    ),
    lines=(
        rule(0.9, *CLASHES),
        rule(
            0.6,
            r"RET_CHECK failure .{0,200}\bdnn != nullptr",
            says(
                "already registered for platform", ("jaxlib 0.10.2", "Compiler factory already registered for platform")
            ),
        ),
    ),
)
