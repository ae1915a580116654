from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, torch, words

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
    "but found at least two devices",
    r"Input type \(torch\.cuda\.\w+\) and weight type \(torch\.(?!cuda)",
    r"\(torch\.\w*Tensor\) and weight type \(torch\.cuda",
    r"type torch\.cuda\.\w+ but (?:found|got) type torch\.(?!cuda)",
    r"type torch\.(?!cuda)\w+ but (?:found|got) type torch\.cuda",
    r"Expected object of (?:device type|backend) \w+ but got",
    "is on cpu, but expected",
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
    r"can't convert (?:CUDA|cuda|mps|xpu)[^\n]{0,40}to numpy",
    "either on cpu or on the same device",
    "Input, output and indices must be on the current device",
    "incompatible devices for jitted",
    "expected (?:it|them) to be on GPU",
    says("indices should be (?:either )?on", ("torch 2.13.0", "indices should be either on")),
    says(
        "tensors? (?:should|must) be on (?:the same|cuda|gpu)",
        ("torch 2.13.0", "linalg_eig_make_complex_eigenvectors: all tensors must be on the same device"),
    ),
    says("Expected a '?cuda'? device", ("torch 2.13.0", "ValueError: Expected a cuda device, but got: cuda:0")),
    "Passed CPU tensor to MPS op",
    "Placeholder storage has not been allocated on MPS",
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
        rule(0.6, "deserialize object on (?:a )?(?:CUDA|cuda)"),
        rule(
            0.85,
            r"\bCPU\b.{0,40}\bbut (?:got|found)\b.{0,30}(?:cuda|mps)\b",
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
            r"(?:expected|on|device) '?(?:cuda|cpu|mps)(?::\d)?'?\b.{0,40}\b(?:got|found|but)\b.{0,30}(?:cuda|cpu|mps)\b",
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
            r"\(cpu tensor\?\)",
        ),
    ),
)
