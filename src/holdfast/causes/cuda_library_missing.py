from __future__ import annotations

from holdfast.causes.form import JAX, KERAS, TORCH, CauseRecord, rule, says, shell

CUDA_LIBRARY = r"(?:libcu\w+|libnvidia-[\w-]+|libnv\w+|libnccl|libdevice|cudart64\w*|cudnn\w*64\w*|cublas64\w*|libcupti|libcusparse\w*|cudnn_\w+64_\d+|nvrtc\w*64\w*|cu(?:fft|rand|solver|sparse)\w*64\w*)"
MISSING_LIBRARY = (
    says(
        CUDA_LIBRARY + r"""[\w.-]*(?:'|\")?:? (?:cannot open shared object|not found|was not found)""",
        ("torch 2.13.0", '"libcudart_static.a" not found under data/train.bin'),
    ),
    says(
        "Could not (?:load (?:dynamic )?library|find|locate) '?" + CUDA_LIBRARY,
        ("tensorflow 2.8", "Could not load dynamic library 'libcudart.so.12'"),
    ),
    says(
        "libdevice (?:not found|is required by)",
        (
            "a log shown in public",
            "2023-04-26 12:33:43.674114: W tensorflow/compiler/xla/service/gpu/llvm_gpu_backend/gpu_backend_lib.cc:274] libdevice is required by this HLO module but was not found at ./libdevice.10.bc",
        ),
    ),
    says(
        "Can't find libdevice",
        ("xla 2026-08-22", "Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may"),
    ),
    r"Unable to load (?:any of \{?)?(?:libcu|CUDA|cuDNN)",
    says(
        "CUDA_HOME environment variable is not set",
        (
            "torch 2.13.0",
            "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        ),
    ),
    r"Could not find module '[^\n']{0,120}(?:cud|torch)",
    "dlerror: .{0,200}undefined symbol: (?:cudnn|cublas|cufft)",
    r"could not find cudnn\w+ in",
    r"libtorch_cuda\w*\.so: cannot open shared object",
    "CUDA Setup failed despite GPU being available",
    says(
        "cuDNN.{0,40}not (?:found|installed)",
        ("torch 2.13.0", "cuDNN/MIOpen library not found. Check your data/train.bin"),
    ),
    "Unable to find (?:cuDNN|CUDA|cuBLAS)",
    r"Is it installed\?",
)
CAUSE = CauseRecord(
    id="cuda-library-missing",
    family="gpu",
    title="A CUDA library is not found",
    meaning="The framework cannot load a library of CUDA or cuDNN, or was installed without GPU support. The packages that bring them along are the simplest way.",
    sure="The library the message names.",
    of_the_installation=True,
    recipes=(
        shell("The package with its CUDA libraries", "pip install 'tensorflow[and-cuda]'", KERAS),
        shell("The package with its CUDA libraries", "pip install -U 'jax[cuda12]'", JAX),
        shell("The package with its CUDA libraries", "pip install --force-reinstall torch", TORCH),
        shell("libdevice: say where CUDA is", "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"),
    ),
    exceptions=(
        rule(0.94, *MISSING_LIBRARY),
        rule(
            0.62,
            says(
                "Torch not compiled with CUDA enabled",
                ("torch 2.13.0", "AssertionError: Torch not compiled with CUDA enabled"),
            ),
            says(
                "Distributed package doesn't have NCCL built in",
                ("torch 2.13.0", "RuntimeError: Distributed package doesn't have NCCL built in"),
            ),
        ),
        rule(0.58, "DNN library is not found"),
        rule(
            0.55,
            says(
                "Found no NVIDIA driver",
                (
                    "torch 2.9",
                    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx",
                ),
            ),
            "No CUDA runtime is found",
            "Couldn't invoke ptxas",
            says(
                "nvcc.{0,20}not found",
                (
                    "apex 25.09",
                    "RuntimeError: 3 was requested, but nvcc was not found.  Are you sure your environment has nvcc available?  If you're installing within a container from https://hub.docker.com/r/pytorch/pytorch, only images whose names contain 'devel' will provide nvcc.",
                ),
            ),
        ),
        rule(
            0.8,
            "'NoneType' and 'str'",
            r"expected str, bytes or os\.PathLike object, not NoneType",
            r"No such file or directory: '\S{0,80}nvcc",
            frames=r"CUDA_HOME|bin[/\\]nvcc|get_cuda_bare_metal",
        ),
    ),
    lines=(
        rule(
            0.93,
            says(
                "libdevice (?:not found|is required by)",
                (
                    "a log shown in public",
                    "2023-04-26 12:33:43.674114: W tensorflow/compiler/xla/service/gpu/llvm_gpu_backend/gpu_backend_lib.cc:274] libdevice is required by this HLO module but was not found at ./libdevice.10.bc",
                ),
            ),
            says(
                "Can't find libdevice",
                ("xla 2026-08-22", "Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may"),
            ),
        ),
        rule(
            0.86,
            says(
                "Cannot dlopen some GPU libraries",
                (
                    "tensorflow 2.3",
                    "2020-08-24 11:08:28.568905: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1753] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.",
                ),
            ),
            says(
                r"Could not load library (?:lib\w+|" + CUDA_LIBRARY + ")",
                (
                    "torch 2.0",
                    "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file: No such file or directory",
                ),
            ),
            "Unable to load CUDA/cuDNN",
        ),
        rule(0.94, r"could not find cudnn\w+ in .{0,40}DSO"),
        rule(0.62, r"Couldn't open CUDA library libcu\w+", r"Unable to load cu\w+ DSO"),
        rule(0.93, "ImportError: " + CUDA_LIBRARY),
        rule(0.68, "Failed to find CUDA library", r"WARN .{0,80}\blibcuda\.so\S{0,4}: cannot open shared object"),
        rule(
            0.55,
            says(
                "Could not load dynamic library '?" + CUDA_LIBRARY + "(?<!libnvinfer)(?<!libnvinfer_plugin)",
                ("tensorflow 2.8", "Could not load dynamic library 'libcudart.so.12'"),
            ),
            r"Could not locate cudnn\w+",
            r"Unable to load any of \{?libcu",
        ),
    ),
    last_frames=((0.55, r"load_dynamic\(name, filename|_pywrap_tensorflow_internal = swig"),),
)
