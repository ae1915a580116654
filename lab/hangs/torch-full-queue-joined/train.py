import multiprocessing as mp
import time

import torch
from torch import nn


def evaluate(weights, rows, results):
    for row in range(rows):
        results.put((row, [float(weights.sum()) + row] * 200))


def main():
    torch.set_num_threads(1)
    context = mp.get_context("fork")
    model = nn.Linear(50, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(3):
        for _ in range(60):
            x = torch.randn(32, 50)
            loss = (model(x).squeeze(1) - x[:, 0]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.01)
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    results = context.Queue()
    print("evaluating", flush=True)
    evaluator = context.Process(target=evaluate, args=(model.weight.detach().numpy().copy(), 500, results))
    evaluator.start()
    evaluator.join()
    scores = [results.get() for _ in range(500)]
    print(f"best {max(score[0] for _, score in scores):.3f}")


if __name__ == "__main__":
    main()
