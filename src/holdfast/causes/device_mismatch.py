from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, torch, words

DEVICES = (
    says(
        "Expected all tensors to be on the same device",
        (
            "torch 2.13.0",
            "Expected all tensors to be on the same device. addmm expected 't' to be CPU tensor, but got tensor on",
        ),
    ),
    says(
        r"Tensor on device \S+ is not on the expected device",
        ("torch 2.13.0", "Tensor on device cuda:0 is not on the expected device cuda:0!"),
    ),
    says(
        "on the same device, but (?:found|got)",
        ("torch 2.13.0", "Expected b and A to be on the same device, but found b on cuda:0 and A on cuda:0 instead."),
    ),
    says(
        r"Input type \(torch\.cuda\.\w+\) and weight type \(torch\.(?!cuda)",
        (
            "torch 1.13",
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
        ),
    ),
    says(
        r"\(torch\.\w*Tensor\) and weight type \(torch\.cuda",
        (
            "torch 1.13",
            "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor and weight is a dense tensor",
        ),
        near(
            "torch 1.13",
            "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        ),
    ),
    says(
        r"type torch\.cuda\.\w+ but (?:found|got) type torch\.(?!cuda)",
        (
            "torch 0.4",
            "RuntimeError: Expected object of type torch.cuda.LongTensor but found type torch.LongTensor for argument #3 'other'",
        ),
        near(
            "torch 0.4",
            "RuntimeError: Expected object of type torch.cuda.LongTensor but found type torch.cuda.FloatTensor for argument #2 'target'",
        ),
    ),
    says(
        r"type torch\.(?!cuda)\w+ but (?:found|got) type torch\.cuda",
        (
            "torch 0.4",
            "RuntimeError: Expected object of type torch.FloatTensor but found type torch.cuda.FloatTensor for argument #1 'mat1'",
        ),
    ),
    says(
        r"Expected object of (?:device type|backend) \w+ but got",
        (
            "torch 1.4",
            "RuntimeError: Expected object of device type cuda but got device type cpu for argument #2 'mat1' in call to _th_addmm",
        ),
    ),
    says(
        "on different (?:GPUs|devices)",
        ("torch 2.13.0", "TypeError: Found two parameters on different devices, this is currently not supported."),
    ),
    says("conflicting devices", ("tensorflow 2.21.0", "Conflicting devices cuda:0 and device_type float32")),
    says(
        "must have its parameters and buffers on device",
        (
            "torch 2.13.0",
            "RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cuda:0",
        ),
    ),
    says(
        r"can't convert (?:CUDA|cuda|mps|xpu)[^\n]{0,40}to numpy",
        (
            "torch 2.6",
            "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        ),
    ),
    says(
        "Input, output and indices must be on the current device",
        ("torch 1.7", "RuntimeError: Input, output and indices must be on the current device"),
    ),
    says(
        "incompatible devices for jitted",
        (
            "jax 0.10.2",
            "ValueError: Received incompatible devices for jitted computation. Got argument x of train_step with shape float32[128,784] and with device ids [0] on platform CPU and argument y of train_step with shape float32[128,784] and with device ids [1] on platform CPU",
        ),
    ),
    says(
        "expected (?:it|them) to be on GPU",
        (
            "torch 1.9",
            "RuntimeError: Tensor for 'out' is on CPU, Tensor for argument #1 'self' is on CPU, but expected them to be on GPU (while checking arguments for addmm)",
        ),
    ),
    says(
        "indices should be (?:either )?on",
        (
            "torch 2.13.0",
            "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
        ),
    ),
    says(
        "tensors? (?:should|must) be on (?:the same|cuda|gpu)",
        ("torch 2.13.0", "linalg_eig_make_complex_eigenvectors: all tensors must be on the same device"),
    ),
    says("Expected a '?cuda'? device", ("torch 2.13.0", "ValueError: Expected a cuda device, but got: cuda:0")),
    says("Passed CPU tensor to MPS op", ("torch 2.4", "RuntimeError: Passed CPU tensor to MPS op")),
    says(
        "Placeholder storage has not been allocated on MPS",
        ("torch 2.1", "RuntimeError: Placeholder storage has not been allocated on MPS device!"),
    ),
)
TENSOR = "(?:tensors?|arrays?|inputs?|weights?|model|parameters?|targets?|outputs?|operands?|labels?|logits|images?|batch(?:es)?)"
CAUSE = CauseRecord(
    id="device-mismatch",
    family="process",
    title="Tensors are on two devices",
    meaning="One is on the GPU and the other on the CPU, or on another GPU. All that meet in one operation have to be on one.",
    sure="The two devices in the message.",
    message_in_title=True,
    recipes=(
        words("Start at your own line", "$frame"),
        torch(
            "Move model and batch to one",
            "device = next(model.parameters()).device\nx, y = x.to(device), y.to(device)",
        ),
        torch("Let the model carry its constants", 'self.register_buffer("mask", mask)'),
        torch("Load a GPU's checkpoint anywhere", 'torch.load("model.pt", map_location="cpu")'),
    ),
    exceptions=(
        rule(0.95, *DEVICES),
        rule(
            0.6,
            says(
                "deserialize object on (?:a )?(?:CUDA|cuda)",
                (
                    "torch 2.13.0",
                    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.",
                ),
            ),
        ),
        rule(
            0.85,
            says(
                r"\bCPU\b.{0,40}\bbut (?:got|found)\b.{0,30}(?:cuda|mps)\b",
                (
                    "torch 2.13.0",
                    "RuntimeError: torch.nn.utils.rnn.pack_padded_sequence: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
                ),
            ),
            says(
                r"[Dd]evice should be \w{2,5}, got",
                ("lightning 2.6.6", "ValueError: Device should be CUDA, got cuda:0 instead."),
            ),
            says(
                "must be on the original device",
                (
                    "transformers 5.22.2",
                    "ValueError: Calculated loss must be on the original device: cuda:0 but device in use is cuda:0",
                ),
            ),
            says(
                r"(?:same|expected) device(?: type)?\b.{0,20}\bbut (?:got|found)",
                (
                    "a log shown in public",
                    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index in method wrapper__index_select)",
                ),
            ),
            says(
                r"Expected an? \w{2,5}(?: or \w{2,5})? device, but got",
                ("torch 2.13.0", "Expected a mtia or cpu device, but got:"),
            ),
        ),
        rule(
            0.82,
            says(
                TENSOR + r"\b.{0,100}\b(?:same|different|wrong|another) device",
                (
                    "a log shown in public",
                    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument index in method wrapper__index_select)",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                r"(?:expected|on|device) '?(?:cuda|cpu|mps)(?::\d)?'?\b.{0,40}\b(?:got|found|but)\b.{0,30}(?:cuda|cpu|mps)\b",
                ("torch 1.4", "RuntimeError: expected device cuda:0 but got device cpu"),
            ),
        ),
        rule(
            0.84,
            says(
                r"(?:must|should|need to) (?:all )?be on (?:devices?\[|the (?:same|first) (?:device|GPU)|cuda|gpu)",
                (
                    "torch 2.13.0",
                    "stft input and window must be on the same device but got self on cuda:0 and window on cuda:0",
                ),
            ),
            says(
                r"\(cpu tensor\?\)",
                ("triton 3.1", "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)"),
            ),
        ),
    ),
)
