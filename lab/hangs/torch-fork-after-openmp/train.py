import multiprocessing as mp

import torch
from torch import nn


def mine(candidates, answers):
    distances = torch.cdist(candidates, candidates)
    answers.put(distances.topk(5).indices[:, -1].tolist())


def hard_examples(pool, answers):
    helper = mp.get_context("fork").Process(target=mine, args=(pool, answers))
    helper.start()
    found = answers.get()
    helper.join()
    return found


def main():
    torch.set_num_threads(4)
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.Adam(encoder.parameters())
    pool = torch.randn(800, 256)
    answers = mp.get_context("fork").SimpleQueue()
    chosen = torch.randperm(800)[:256].tolist()
    for step in range(1, 151):
        anchor = pool[chosen]
        loss = (encoder(anchor) - encoder(anchor + 0.1 * torch.randn_like(anchor))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
        if step == 60:
            print("preparing hard examples", flush=True)
            chosen = hard_examples(pool, answers)[:256]


if __name__ == "__main__":
    main()
