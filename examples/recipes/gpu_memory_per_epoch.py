"""How much memory of the GPU each epoch took, at its highest.

The usual recipe prints `psutil.virtual_memory()`, which is the host's RAM. A GPU's memory is asked from the framework: what tensors hold
(`max_memory_allocated`) and what the framework has reserved (`max_memory_reserved`; `nvidia-smi` shows that one, and the context on top).
The highest value must be reset for each epoch, or it only says what the first one took.

Holdfast without this recipe: GPU memory of the job is recorded every second by NVML; `holdfast top` shows it, a rise from epoch to epoch is
told as a leak with what holds it, and a step that does not fit is done in smaller pieces.
"""

import torch


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def forget_the_highest(where):
    if where.type == "cuda":
        torch.cuda.reset_peak_memory_stats(where)


def highest(where):
    """None where there is no GPU: host memory is no stand-in for it."""
    if where.type != "cuda":
        return None
    return {
        "tensors_bytes": torch.cuda.max_memory_allocated(where),
        "reserved_bytes": torch.cuda.max_memory_reserved(where),
    }


def main(epochs=2):
    where = device()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)).to(where)
    optimizer = torch.optim.Adam(model.parameters())
    told = []
    for _ in range(epochs):
        forget_the_highest(where)
        for _ in range(5):
            x = torch.randn(32, 64, device=where)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        told.append(highest(where))
    return {"device": where.type, "per_epoch": told}


if __name__ == "__main__":
    print(main())
