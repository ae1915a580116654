from __future__ import annotations

from holdfast.causes.form import JAX, KERAS, TORCH, CauseRecord, rule, says, shell

CUDA_LIBRARY = r"(?:libcu\w+|libnvidia-[\w-]+|libnv\w+|libnccl|libdevice|cudart64\w*|cudnn\w*64\w*|cublas64\w*|libcupti|libcusparse\w*|cudnn_\w+64_\d+|nvrtc\w*64\w*|cu(?:fft|rand|solver|sparse)\w*64\w*)"
MISSING_LIBRARY = (
    says(
        CUDA_LIBRARY + r"""[\w.-]*(?:'|\")?:? (?:cannot open shared object|not found|was not found)""",
        (
            "torch 2.15.0 without its CUDA wheels",
            "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
        ),
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
        (
            "xla 2026-08-22",
            "Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may result in compilation or runtime failures, if the program we try to run uses routines from libdevice.",
        ),
    ),
    says(
        "CUDA_HOME environment variable is not set",
        (
            "torch 2.13.0",
            "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        ),
    ),
    says(
        r"Could not find module '[^\n']{0,120}(?:cud|torch)",
        (
            "torch 1.5 on Windows",
            "FileNotFoundError: Could not find module 'C:\\Users\\crovn\\AppData\\Local\\Programs\\Python\\Python38\\lib\\site-packages\\torch\\lib\\caffe2_nvrtc.dll' (or one of its dependencies). Try using the full path with constructor syntax.",
        ),
    ),
    says(
        r"could not find cudnn\w+ in",
        (
            "tensorflow 1.0 log",
            "F tensorflow/stream_executor/cuda/cuda_dnn.cc:222] Check failed: s.ok() could not find cudnnCreate in cudnn DSO; dlerror: /usr/local/lib/python3.5/dist-packages/tensorflow/python/_pywrap_tensorflow.so: undefined symbol: cudnnCreate",
        ),
    ),
    says(
        r"libtorch_cuda\w*\.so: cannot open shared object",
        (
            "torch 1.13, an extension built for 1.12",
            "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory",
        ),
    ),
    says(
        "CUDA Setup failed despite GPU being available",
        (
            "bitsandbytes 0.41",
            "RuntimeError: \n        CUDA Setup failed despite GPU being available. Please run the following command to get more information:\n\n        python -m bitsandbytes\n\n        Inspect the output of the command and see if you can locate CUDA libraries. You might need to add them\n        to your LD_LIBRARY_PATH. If you suspect a bug, please take the information from python -m bitsandbytes\n        and open an issue at: https://github.com/TimDettmers/bitsandbytes/issues",
        ),
    ),
    says(
        "cuDNN.{0,40}not (?:found|installed)",
        ("torch 2.13.0", "cuDNN/MIOpen library not found. Check your LD_LIBRARY_PATH"),
    ),
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
        rule(
            0.58,
            says(
                "DNN library is not found",
                (
                    "tensorflow 2.9",
                    "UnimplementedError: Graph execution error:\n\nDNN library is not found.\n\t [[{{node sequential_2/conv2d_2/Conv2D}}]] [Op:__inference_train_function_32418]",
                ),
            ),
        ),
        rule(
            0.55,
            says(
                "Found no NVIDIA driver",
                (
                    "torch 2.9",
                    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx",
                ),
            ),
            says(
                "nvcc.{0,20}not found",
                (
                    "apex 25.09",
                    "RuntimeError: --cuda_ext was requested, but nvcc was not found.  Are you sure your environment has nvcc available?  If you're installing within a container from https://hub.docker.com/r/pytorch/pytorch, only images whose names contain 'devel' will provide nvcc.",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                "'NoneType' and 'str'",
                (
                    "apex setup.py",
                    'Traceback (most recent call last):\n  File "setup.py", line 35, in <module>\n    _, bare_metal_major, _ = get_cuda_bare_metal_version(cpp_extension.CUDA_HOME)\n  File "setup.py", line 14, in get_cuda_bare_metal_version\n    raw_output = subprocess.check_output([cuda_dir + "/bin/nvcc", "-V"], universal_newlines=True)\nTypeError: unsupported operand type(s) for +: \'NoneType\' and \'str\'',
                ),
            ),
            says(
                r"No such file or directory: '\S{0,80}nvcc",
                (
                    "flash-attn 2.5 setup.py",
                    'Traceback (most recent call last):\n  File "/tmp/pip-install-2kh9k980/flash-attn/setup.py", line 113, in <module>\n    _, bare_metal_version = get_cuda_bare_metal_version(CUDA_HOME)\n  File "/tmp/pip-install-2kh9k980/flash-attn/setup.py", line 65, in get_cuda_bare_metal_version\n    raw_output = subprocess.check_output([cuda_dir + "/bin/nvcc", "-V"], universal_newlines=True)\n  File "/home/user/miniconda/lib/python3.9/subprocess.py", line 424, in check_output\n    return run(*popenargs, stdout=PIPE, timeout=timeout, check=True,\n  File "/home/user/miniconda/lib/python3.9/subprocess.py", line 1821, in _execute_child\n    raise child_exception_type(errno_num, err_msg, err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: \'/usr/local/cuda/bin/nvcc\'',
                ),
            ),
            frames=r"CUDA_HOME|bin[/\\]nvcc|get_cuda_bare_metal",
        ),
    ),
    lines=(
        rule(
            0.6,
            says(
                "Could not find the bitsandbytes CUDA binary at",
                (
                    "bitsandbytes 0.45",
                    "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/env/bitsandbytes/libbitsandbytes_cuda124.so')",
                ),
            ),
        ),
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
                (
                    "xla 2026-08-22",
                    "Can't find libdevice directory ${CUDA_DIR}/nvvm/libdevice. This may result in compilation or runtime failures, if the program we try to run uses routines from libdevice.",
                ),
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
        ),
        rule(
            0.94,
            says(
                r"could not find cudnn\w+ in .{0,40}DSO",
                (
                    "tensorflow 1.0 log",
                    "F tensorflow/stream_executor/cuda/cuda_dnn.cc:222] Check failed: s.ok() could not find cudnnCreate in cudnn DSO; dlerror: /usr/local/lib/python3.5/dist-packages/tensorflow/python/_pywrap_tensorflow.so: undefined symbol: cudnnCreate",
                ),
            ),
        ),
        rule(
            0.62,
            says(
                r"Couldn't open CUDA library libcu\w+",
                (
                    "tensorflow 0.12 log",
                    "I tensorflow/stream_executor/dso_loader.cc:102] Couldn't open CUDA library libcudnn.so. LD_LIBRARY_PATH: /usr/local/cuda/lib64:/usr/local/nvidia/lib:/usr/local/nvidia/lib64:",
                ),
            ),
            says(
                r"Unable to load cu\w+ DSO",
                ("tensorflow 0.12 log", "I tensorflow/stream_executor/cuda/cuda_dnn.cc:1562] Unable to load cuDNN DSO"),
            ),
        ),
        rule(
            0.93,
            says(
                "ImportError: " + CUDA_LIBRARY,
                (
                    "tensorflow 1.4",
                    "ImportError: libcublas.so.8.0: cannot open shared object file: No such file or directory",
                ),
            ),
        ),
        rule(
            0.68,
            says(
                "Failed to find CUDA library",
                (
                    "NCCL 2.18",
                    "node1:4242:4242 [0] misc/cudawrap.cc:182 NCCL WARN Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : libcuda.so: cannot open shared object file: No such file or directory",
                ),
            ),
        ),
        rule(
            0.55,
            says(
                "Could not load dynamic library '?" + CUDA_LIBRARY + "(?<!libnvinfer)(?<!libnvinfer_plugin)",
                ("tensorflow 2.8", "Could not load dynamic library 'libcudart.so.12'"),
            ),
            says(
                r"Could not locate cudnn\w+",
                (
                    "CTranslate2 3 on Windows",
                    "Could not locate cudnn_ops_infer64_8.dll. Please make sure it is in your library path!",
                ),
            ),
            says(
                r"Unable to load any of \{?libcu",
                (
                    "CTranslate2 4",
                    "Unable to load any of {libcudnn_cnn.so.9.1.0, libcudnn_cnn.so.9.1, libcudnn_cnn.so.9, libcudnn_cnn.so}",
                ),
            ),
        ),
    ),
    last_frames=((0.55, r"load_dynamic\(name, filename|_pywrap_tensorflow_internal = swig"),),
)
