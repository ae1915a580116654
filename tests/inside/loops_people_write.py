"""Training loops as people write them; none of them knows of Holdfast. Each returns its losses and what it trained."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Sampler, TensorDataset

from tests.inside.lack_of_memory import Take

Loop = Callable[[], tuple[list[float], list[Any]]]
LOOPS: dict[str, Loop] = {}
ROWS = 12


def loop(function: Loop) -> Loop:
    LOOPS[function.__name__] = function
    return function


class Costly(nn.Module):
    def forward(self, x: Any) -> Any:
        return Take.apply(x)


def net(*between: Any, width: int = 16, out: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), Costly(), *between, nn.Linear(width, out)).double()


def data(rows: int = 3 * ROWS + 5) -> TensorDataset:
    random = torch.Generator().manual_seed(2)
    x = torch.randn(rows, 6, generator=random, dtype=torch.float64)
    return TensorDataset(x, torch.randint(0, 3, (rows,), generator=random))


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(data(), batch_size=ROWS, **options)


@loop
def plain() -> tuple[list[float], list[Any]]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for _ in range(2):
        for x, y in loader(shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, [model]


@loop
def zeroed_after_the_forward_pass() -> tuple[list[float], list[Any]]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        output = model(x)
        loss = F.cross_entropy(output, y, reduction="sum")
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() + float((output.argmax(1) == y).double().mean()))
    return losses, [model]


@loop
def accumulation() -> tuple[list[float], list[Any]]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x, y) in enumerate(loader()):
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        losses.append(loss.item())
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return losses, [model]


@loop
def clipping_and_schedulers() -> tuple[list[float], list[Any]]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, nesterov=True, momentum=0.5)
    by_step = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    by_epoch = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        for x, y in loader():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            losses.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.1)))
            optimizer.step()
            by_step.step()
        by_epoch.step()
    return losses, [model]


@loop
def two_optimizers() -> tuple[list[float], list[Any]]:
    """A GAN: each trains on what the other makes."""
    generator, critic, losses = net(out=6), net(out=1), []
    of_generator = torch.optim.SGD(generator.parameters(), lr=0.05)
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.05)
    for x, _ in loader():
        fake = generator(torch.randn(len(x), 6, dtype=torch.float64))
        of_critic.zero_grad()
        loss = F.softplus(-critic(x)).mean() + F.softplus(critic(fake.detach())).mean()
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        of_generator.step()
        losses.append(loss.item())
    return losses, [generator, critic]


@loop
def validation_in_between() -> tuple[list[float], list[Any]]:
    model, losses = net(nn.Dropout(0.0)), []
    best: Any = None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model.train()
        for x, y in loader():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses += [F.cross_entropy(model(x), y).item() for x, y in DataLoader(data(), batch_size=2)]
        best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return losses, [model]


@loop
def encoder_and_decoder() -> tuple[list[float], list[Any]]:
    encoder, decoder, losses = net(out=4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Costly(), nn.Linear(8, 6)), []
    decoder.double()
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for x, _ in loader():
        code = encoder(x)
        loss = F.mse_loss(decoder(code * 2 + 1), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [encoder, decoder]


@loop
def contrastive() -> tuple[list[float], list[Any]]:
    """One encoder called twice; the loss is over the whole batch."""
    model, losses = net(out=8), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, _ in loader():
        one, other = F.normalize(model(x)), F.normalize(model(x + 0.1))
        loss = F.cross_entropy(one @ other.T / 0.5, torch.arange(len(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


@dataclass
class Output:
    loss: Any
    logits: Any
    hidden: tuple[Any, ...] = ()


class WithLoss(nn.Module):
    """As Hugging Face's models: the loss is computed within, over the tokens that count."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.body = nn.Embedding(11, 16), nn.GRU(16, 16, batch_first=True)
        self.costly, self.head = Costly(), nn.Linear(16, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, input_ids: Any, labels: Any = None) -> Output:
        hidden = self.costly(self.body(self.tokens(input_ids))[0])
        logits = self.head(hidden)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return Output(loss, logits, (hidden,))


@loop
def loss_within_the_model_and_tied_weights() -> tuple[list[float], list[Any]]:
    model, losses = WithLoss().double(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    random = torch.Generator().manual_seed(4)
    for _ in range(4):
        ids = torch.randint(1, 11, (ROWS, 7), generator=random)
        labels = ids.clone()
        for row in range(ROWS):
            labels[row, 3 + row % 4 :] = -100
        output = model(input_ids=ids, labels=labels)
        (output.loss + 0.01 * output.logits.pow(2).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(output.loss.item())
    return losses, [model]


class BySize(Sampler[list[int]]):
    """Batches of different sizes."""

    def __iter__(self) -> Any:
        return iter([list(range(3)), list(range(3, 15)), list(range(10, 31)), list(range(2))])


@loop
def own_sampler() -> tuple[list[float], list[Any]]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data(), batch_sampler=BySize()):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.costly, self.head = nn.LSTM(6, 12, 2, batch_first=True), Costly(), nn.Linear(12, 3)

    def forward(self, x: Any, state: Any = None) -> Any:
        out, (h, _) = self.lstm(x, state)
        return self.head(self.costly(out[:, -1])), h.transpose(0, 1)


@loop
def lstm() -> tuple[list[float], list[Any]]:
    model, losses = Recurrent().double(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        logits, state = model(x.unsqueeze(1).repeat(1, 5, 1))
        loss = F.cross_entropy(logits, y) + state.pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


@loop
def inputs_that_want_a_gradient() -> tuple[list[float], list[Any]]:
    """Adversarial training: the gradient of the inputs first, by autograd.grad; then the weights'."""
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        x.requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
        moved = (x + 0.1 * slope.sign()).detach()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(moved), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


@loop
def own_learned_prompt() -> tuple[list[float], list[Any]]:
    """A parameter beside the module, given to it whole."""

    class Prompted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = net()

        def forward(self, x: Any, prompt: Any) -> Any:
            return {"logits": self.body(x + prompt), "largest": x.argmax(1), "scale": 2.0}

    model, prompt, losses = Prompted(), nn.Parameter(torch.zeros(6, dtype=torch.float64)), []
    optimizer = torch.optim.SGD([*model.parameters(), prompt], lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, prompt=prompt)["logits"], y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model, prompt]


@loop
def variational() -> tuple[list[float], list[Any]]:
    class Variational(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = net(out=8), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6))

        def forward(self, x: Any) -> Any:
            mean, spread = self.encoder(x).chunk(2, 1)
            return self.decoder(mean + 0.1 * spread.exp()), mean, spread

    model, losses = Variational().double(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, _ in loader():
        made, mean, spread = model(x)
        loss = F.mse_loss(made, x, reduction="sum") - 0.5 * (1 + spread - mean**2 - spread.exp()).sum()
        optimizer.zero_grad()
        (loss / len(x)).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


@loop
def mixed_precision() -> tuple[list[float], list[Any]]:
    """In float32 and bfloat16, with a loss scale: compared in those."""
    model, losses = net().float(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    for x, y in loader():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(x.float()), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, [model]


@loop
def batch_normalisation() -> tuple[list[float], list[Any]]:
    model, losses = net(nn.BatchNorm1d(16)), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader(drop_last=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


@loop
def dropout() -> tuple[list[float], list[Any]]:
    model, losses = net(nn.Dropout(0.3)), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [model]


def weights(trained: list[Any]) -> Any:
    parts = [one.state_dict().values() if isinstance(one, nn.Module) else [one] for one in trained]
    return torch.cat([tensor.detach().double().flatten() for part in parts for tensor in part])


def run(name: str) -> tuple[list[float], Any]:
    torch.manual_seed(1)
    losses, trained = LOOPS[name]()
    return losses, weights(trained)
