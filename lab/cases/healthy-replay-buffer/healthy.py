import random
from collections import deque

import torch
from torch import nn

LENGTH, SIDE = 1500, 128


def frame(state):
    return torch.full((SIDE, SIDE), state % 1.0) + torch.rand(SIDE, SIDE) * 0.1


def main():
    torch.set_num_threads(1)
    torch.manual_seed(109)
    chooser = random.Random(109)
    replay = deque(maxlen=LENGTH)
    network = nn.Sequential(nn.Conv2d(1, 8, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 256, 4))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    print(f"playing with a memory of {LENGTH} frames")
    for turn in range(5000):
        replay.append((frame(turn / 100), turn % 4, float(turn % 7 == 0)))
        if turn < 64 or turn % 4:
            continue
        frames, actions, rewards = zip(*chooser.sample(list(replay), 16))
        values = network(torch.stack(frames).unsqueeze(1)).gather(1, torch.tensor(actions).unsqueeze(1))
        loss = nn.functional.smooth_l1_loss(values.squeeze(1), torch.tensor(rewards))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if turn % 500 == 0:
            print(f"turn {turn}: loss {loss.item():.4f}, {len(replay)} frames")


if __name__ == "__main__":
    main()
