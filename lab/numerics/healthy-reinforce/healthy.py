import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(110)

policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
model = policy
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
baseline = 0.0
for episode in range(250):
    state = torch.randn(4)
    log_probabilities, rewards = [], []
    for t in range(20):
        distribution = torch.distributions.Categorical(logits=policy(state))
        action = distribution.sample()
        log_probabilities.append(distribution.log_prob(action))
        rewards.append(1.0 if (state[0] > 0) == bool(action) else -1.0)
        state = 0.8 * state + 0.6 * torch.randn(4)
    returns = torch.tensor([sum(rewards[i:]) for i in range(20)])
    baseline = 0.9 * baseline + 0.1 * returns.mean().item()
    loss = -(torch.stack(log_probabilities) * (returns - baseline)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 50 == 0:
        print(f"episode {episode}: return {sum(rewards):.0f}, loss {loss.item():.3f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
