import logging
import sys

import torch
from torch import nn

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("bug-triage")
REPORTS = [
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "Killed",
    "Segmentation fault (core dumped)",
    "java.lang.OutOfMemoryError: Java heap space",
    "loss is nan after 3 epochs",
    "OSError: [Errno 28] No space left on device",
    "RuntimeError: DataLoader worker (pid 311) is killed by signal: Bus error.",
    "how do I centre a div",
]


def encode(text):
    counts = torch.zeros(128)
    for letter in text:
        counts[ord(letter) % 128] += 1
    return counts


def main():
    """Learns to sort bug reports; the reports are printed as they come."""
    torch.manual_seed(97)
    model = nn.Linear(128, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    error = 0.0
    for step in range(240):
        report = REPORTS[step % len(REPORTS)]
        target = torch.tensor([float(len(report) > 30)])
        loss = nn.functional.binary_cross_entropy_with_logits(model(encode(report)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        error += abs(torch.sigmoid(model(encode(report))) - target).item()
        if step % 30 == 0:
            log.error("report %d: %s", step, report)
            print(f"report {step}: {report}")
            print("precision nan (no positive predictions), recall 0.0, 0 errors, 0 failed")
    print(f"mean absolute error {error / 240:.4f}")


if __name__ == "__main__":
    main()
