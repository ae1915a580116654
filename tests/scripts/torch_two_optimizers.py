"""A generator and a critic, each with an optimizer of its own; the critic goes first in every round."""

import hashlib
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


loader = DataLoader(TensorDataset(torch.randn(960, 16)), batch_size=32, shuffle=True)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
critic = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
update_generator = torch.optim.Adam(generator.parameters(), lr=2e-4)
update_critic = torch.optim.Adam(critic.parameters(), lr=2e-4)
criterion = nn.BCEWithLogitsLoss()

losses = []
for epoch in range(15):
    for (real,) in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = generator(torch.randn(len(real), 8))

        update_critic.zero_grad()
        critic_loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
        critic_loss.backward()
        update_critic.step()

        update_generator.zero_grad()
        criterion(critic(fake), ones).backward()
        update_generator.step()
        losses.append(critic_loss.item())


def fingerprint(*models):
    found = hashlib.sha256()
    for model in models:
        for tensor in model.state_dict().values():
            found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()


print(
    json.dumps(
        {
            "steps": len(losses),
            "epochs": epoch + 1,
            "losses": losses,
            "batch_shape": list(real.shape),
            "wait_share": None,
            "weights": fingerprint(generator, critic),
        }
    )
)
