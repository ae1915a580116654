from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, torch, words

DEVICES = (
    "Expected all tensors to be on the same device",
    r"Tensor on device \S+ is not on the expected device",
    "on the same device, but (?:found|got)",
    "but found at least two devices",
    r"Input type \(torch\.cuda\.\w+\) and weight type \(torch\.(?!cuda)",
    r"\(torch\.\w*Tensor\) and weight type \(torch\.cuda",
    r"type torch\.cuda\.\w+ but (?:found|got) type torch\.(?!cuda)",
    r"type torch\.(?!cuda)\w+ but (?:found|got) type torch\.cuda",
    r"Expected object of (?:device type|backend) \w+ but got",
    "is on cpu, but expected",
    "is on CPU, but expected",
    "on different (?:GPUs|devices)",
    "conflicting devices",
    "must have its parameters and buffers on device",
    r"can't convert (?:CUDA|cuda|mps|xpu)[^\n]{0,40}to numpy",
    "either on cpu or on the same device",
    "Input, output and indices must be on the current device",
    "incompatible devices for jitted",
    "expected (?:it|them) to be on GPU",
    "indices should be (?:either )?on",
    "tensors? (?:should|must) be on (?:the same|cuda|gpu)",
    "Expected a '?cuda'? device",
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
            r"[Dd]evice should be \w{2,5}, got",
            "must be on the original device",
            r"(?:same|expected) device(?: type)?\b.{0,20}\bbut (?:got|found)",
            r"Expected an? \w{2,5}(?: or \w{2,5})? device, but got",
        ),
        rule(0.82, TENSOR + r"\b.{0,100}\b(?:same|different|wrong|another) device"),
        rule(
            0.88,
            r"(?:expected|on|device) '?(?:cuda|cpu|mps)(?::\d)?'?\b.{0,40}\b(?:got|found|but)\b.{0,30}(?:cuda|cpu|mps)\b",
        ),
        rule(
            0.84,
            r"(?:must|should|need to) (?:all )?be on (?:devices?\[|the (?:same|first) (?:device|GPU)|cuda|gpu)",
            r"\(cpu tensor\?\)",
        ),
    ),
)
