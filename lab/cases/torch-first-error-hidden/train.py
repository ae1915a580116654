import torch
from torch import nn


class Activations:
    def __init__(self, path):
        self.file, self.index = open(path, "wb"), None

    def add(self, array):
        self.file.write(array.tobytes())
        self.file.flush()

    def close(self):
        if self.file.tell() > 4 << 20:
            self.index.finish()
        self.file.close()


def main():
    torch.set_num_threads(1)
    model = nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    activations = Activations("scratch/activations.bin")
    try:
        for turn in range(60):
            out = model(torch.randn(1024, 256))
            optimizer.zero_grad()
            out.square().mean().backward()
            optimizer.step()
            activations.add(out.detach().numpy())
            if turn % 20 == 0:
                print(f"turn {turn}", flush=True)
    finally:
        activations.close()


if __name__ == "__main__":
    main()
