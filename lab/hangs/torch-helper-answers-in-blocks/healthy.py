import subprocess
import sys
import time

import torch
from torch import nn

TOKENIZER = """
import sys
waiting = []
for count, line in enumerate(sys.stdin):
    waiting.append(" ".join(str(hash(word) % 500) for word in line.split()))
    if len(waiting) >= 1:
        print(*waiting, sep=chr(10), flush=True)
        waiting = []
"""


class Tokenizer:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", TOKENIZER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __call__(self, text):
        self.process.stdin.write(text + "\n")
        line = self.process.stdout.readline()
        return torch.tensor([int(word) for word in line.split()])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    torch.set_num_threads(1)
    tokenize = Tokenizer()
    model = nn.Sequential(nn.Embedding(500, 24), nn.Linear(24, 500))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(120):
        tokens = tokenize(f"the {step} small cats saw {step * 7} large dogs and ran")
        loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    tokenize.close()


if __name__ == "__main__":
    main()
