from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell

CLASHES = (
    says(
        "OMP: Error #15",
        (
            "LLVM OpenMP runtime",
            "OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll already initialized.",
        ),
    ),
    says(
        "multiple copies of the OpenMP runtime have been linked",
        (
            "LLVM OpenMP runtime",
            "OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program. That is dangerous, since it can degrade performance or cause incorrect results. The best thing to do is to ensure that only a single OpenMP runtime is linked into the process, e.g. by avoiding static linking of the OpenMP runtime in any library.",
        ),
    ),
    says(
        "undefined symbol",
        (
            "glibc 2.36",
            "ImportError: /usr/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN2at4_ops6conv2d4callERKNS_6TensorES4_",
        ),
    ),
    says("symbol lookup error", ("glibc", "symbol lookup error")),
    says(
        r"version `?(?:GLIBC|GLIBCXX|CXXABI)[\w.]*'? not found",
        (
            "glibc 2.27",
            "ImportError: /lib/aarch64-linux-gnu/libm.so.6: version `GLIBC_2.29' not found (required by /usr/lib/python3.8/site-packages/tflite_runtime/_pywrap_tensorflow_interpreter_wrapper.cpython-38-aarch64-linux-gnu.so)",
        ),
    ),
    says(
        "Symbol not found", ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: named symbol not found")
    ),
    says(
        "cannot enable executable stack as shared object",
        ("glibc", "cannot enable executable stack as shared object requires"),
    ),
    says(
        r"not defined in file \S{1,80} with link time reference",
        (
            "glibc with torch 1.11",
            "OSError: /usr/lib/python3.8/site-packages/torch/lib/libtorch_cuda.so: symbol cublasSetWorkspace_v2, version libcublas.so.11 not defined in file libcublas.so.11 with link time reference",
        ),
    ),
    says(
        "static TLS block",
        (
            "glibc 2.36",
            "ImportError: /usr/lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block",
        ),
    ),
    says(
        "MKL FATAL ERROR",
        ("Intel MKL 2018", "Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so or libmkl_def.so."),
    ),
    says(
        "incompatible with libgomp",
        (
            "mkl-service 2.4",
            "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 library.",
        ),
        near("bash with set -x", "+ export MKL_THREADING_LAYER=GNU"),
    ),
    says("File already exists in database", ("jaxlib 0.10.2", "File already exists in database:")),
    says(
        r"version [\d.]+ of the Protocol Buffer runtime",
        (
            "protobuf 3.6",
            "[libprotobuf FATAL google/protobuf/stubs/common.cc:61] This program requires version 3.6.1 of the Protocol Buffer runtime library, but the installed version is 2.6.1.  Please update your library.",
        ),
        (
            "protobuf 3.5",
            "[libprotobuf FATAL google/protobuf/stubs/common.cc:79] This program was compiled against version 3.0.0 of the Protocol Buffer runtime library, which is not compatible with the installed version (3.5.1).  Contact the program author for an update.",
        ),
    ),
    says(
        r"Loaded (?:runtime )?cudnn library: [\d.]+[^\n]{0,60}but source was compiled",
        (
            "jaxlib 0.5",
            "E0430 22:32:43.417007 2493694 cuda_dnn.cc:454] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.8.0. CuDNN library needs to have matching major version and equal or higher minor version.",
        ),
    ),
    says(
        r"Found \w+ version \d+, but JAX was built against version \d",
        (
            "jax 0.4.23",
            "CUDA backend failed to initialize: Found cuDNN version 8700, but JAX was built against version 8904, which is newer. The copy of cuDNN that is installed must be at least as new as the version against which JAX was built. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
        ),
    ),
    says(
        "cuDNN version incompatibility",
        ("torch 2.13.0", "cuDNN version incompatibility: PyTorch was compiled  against"),
    ),
    says(
        "CUDNN_STATUS_(?:VERSION|SUBLIBRARY_VERSION)_MISMATCH",
        (
            "cuDNN 9",
            "RuntimeError: cuDNN Frontend error: CUDNN_BACKEND_TENSOR_DESCRIPTOR cudnnFinalize failed ptrDesc->finalize() cudnn_status: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        ),
    ),
    says(
        "mach-o.{0,60}(?:wrong|incompatible) architecture",
        (
            "macOS 13",
            "OSError: dlopen(/usr/local/lib/libopus.dylib, 0x0006): tried: '/usr/local/lib/libopus.dylib' (mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64e' or 'arm64'))",
        ),
    ),
    says("wrong ELF class", ("glibc 2.36", "OSError: /usr/lib32/libcudart.so.11.0: wrong ELF class: ELFCLASS32")),
    says("invalid ELF header", ("glibc 2.36", "OSError: /usr/lib/x86_64-linux-gnu/libc.so: invalid ELF header")),
    says(
        r"\.so[\d.]{0,12}: file too short",
        ("glibc 2.36", "OSError: /home/user/project/ext.so: file too short"),
    ),
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
        rule(
            0.7,
            says(
                "dynamic module does not define (?:init|module export) function",
                (
                    "CPython 3.11.7",
                    "ImportError: dynamic module does not define module export function (PyInit_bev_pool_ext)",
                ),
            ),
        ),
        rule(
            0.62,
            says(
                r"RET_CHECK failure .{0,200}\bdnn != nullptr",
                (
                    "jaxlib 0.4.4",
                    "2023-03-06 16:35:33.099836: E external/org_tensorflow/tensorflow/compiler/xla/status_macros.cc:57] INTERNAL: RET_CHECK failure (external/org_tensorflow/tensorflow/compiler/xla/service/gpu/gpu_compiler.cc:627) dnn != nullptr ",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                r"DLL load failed[^\n]{0,200}specified procedure could not be found",
                (
                    "CPython 3.9 on Windows",
                    "ImportError: DLL load failed while importing cl: The specified procedure could not be found.",
                ),
            ),
        ),
        rule(
            0.6,
            says(
                r"DLL load failed[^\n]{0,60}_pywrap",
                (
                    "tensorflow 2 on Windows",
                    "ImportError: DLL load failed while importing _pywrap_tensorflow_internal: A dynamic link library (DLL) initialization routine failed.",
                ),
            ),
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
        # What Windows says of a library, or of a function in it, that is not there.
        rule(
            0.6,
            says(
                r"(?:-10737415(?:15|11)|32212257(?:81|85)|0xC00001(?:35|39))\b",
                ("PyCharm on Windows 10", "Process finished with exit code -1073741515 (0xC0000135)"),
            ),
        ),
        rule(
            0.6,
            r"RET_CHECK failure .{0,200}\bdnn != nullptr",
            says(
                "already registered for platform", ("jaxlib 0.10.2", "Compiler factory already registered for platform")
            ),
        ),
    ),
)
