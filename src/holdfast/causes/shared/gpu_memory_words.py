"""What frameworks, runtimes and libraries say when a GPU has no memory left: more than stands well beside the record."""

from __future__ import annotations

from holdfast.causes.form import says

GPU_WORDS = (
    says(
        "(?:CUDA|HIP|XPU|NPU|MPS backend|MUSA) out of memory",
        (
            "torch 2.0",
            "RuntimeError: MPS backend out of memory (MPS allocated: 8.90 GB, other allocations: 1.20 GB, max allowed: 9.07 GB). Tried to allocate 256.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
        ),
    ),
    says(
        "CUDA error: out of memory", ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: out of memory")
    ),
    says(
        r"[Tt]ried to allocate [\d.]+ [KMGT]iB \(GPU \d",
        (
            "torch 1.10",
            "Tried to allocate 15.37 GiB (GPU 0; 23.66 GiB total capacity; 15.69 GiB already allocated; 5.37 GiB free; 16.08 GiB reserved in total by PyTorch)",
        ),
    ),
    says(
        r"cuda runtime error \(2\)",
        (
            "torch 0.3",
            "RuntimeError: cuda runtime error (2) : out of memory at /b/wheel/pytorch-src/torch/lib/THC/generic/THCStorage.cu:66",
        ),
    ),
    says(
        "CUDA_ERROR_OUT_OF_MEMORY",
        (
            "tensorflow 1.13",
            "2019-04-09 02:01:27.898877: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 3.90G (4185849856 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        ),
    ),
    says(
        "cudaErrorMemoryAllocation",
        ("CUDA C++ core libraries", "std::bad_alloc: cudaErrorMemoryAllocation: out of memory"),
    ),
    says(
        "cudaMalloc(?:Async)? (?:retry )?failed: out of memory",
        (
            "llama.cpp",
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 590.07 MiB on device 0: cudaMalloc failed: out of memory",
        ),
    ),
    says("hipErrorOutOfMemory", ("ROCm 6", "hipMalloc(32212254720 bytes) failed: hipErrorOutOfMemory: out of memory")),
    says("CUDA driver error: out of memory", ("torch 2.1", "RuntimeError: CUDA driver error: out of memory")),
    says(
        r"Cuda failure (?:\d+ )?'out of memory'",
        ("NCCL 2.27", "node1:4242:4242 [0] NCCL WARN Cuda failure 2 'out of memory'"),
    ),
    says(
        "Failed to CUDA (?:host )?[cm]alloc",
        ("nccl nccl4py-v0.3.1", "node1:4242:4242 [0] NCCL WARN Failed to CUDA calloc async 4194304 bytes"),
    ),
)
