import subprocess
import sysconfig

import torch
from torch import nn

BUILT_FOR = "-DLIBRARY_VERSION=2"


def build():
    """Done once, when the environment was made."""
    target = "fast_ops" + sysconfig.get_config_var("EXT_SUFFIX")
    headers = sysconfig.get_paths()["include"]
    command = ["gcc", "-shared", "-fPIC", "-O2", BUILT_FOR, f"-I{headers}", "fast_ops.c", "-o", target]
    subprocess.run(command, check=True)


def main():
    print("building the extension")
    build()
    import fast_ops

    torch.manual_seed(41)
    x = torch.randn(1000, 20)
    y = x[:, :2].sum(dim=1, keepdim=True) * fast_ops.scale(2.0)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 4):
        for rows, targets in zip(x.split(50), y.split(50)):
            loss = nn.functional.mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
