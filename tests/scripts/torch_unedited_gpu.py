"""Loops people write, on a GPU: `torch_unedited_gpu.py LOOP ROWS RESULT.pt`. None of them knows of Holdfast."""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

name, rows, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
STEPS = 5
torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
random = torch.Generator().manual_seed(2)


def image_net(*norm, out=10):
    blocks = [
        layer for _ in range(6) for layer in (nn.Conv2d(32, 32, 3, padding=1), *(kind(32) for kind in norm), nn.ReLU())
    ]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, out)]
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, *head).double().cuda()


def images():
    for _ in range(STEPS):
        x = torch.randn(rows, 3, 32, 32, generator=random).double().cuda()
        yield x, torch.randint(0, 10, (rows,), generator=random).cuda()


def usual(model, after_backward=lambda: None, after_step=lambda: None, every=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(images()):
        loss = F.cross_entropy(model(x), y) / every
        loss.backward()
        after_backward()
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        after_step()
    return [model]


def plain():
    return usual(image_net())


def accumulation():
    return usual(image_net(), every=2)


def clipping():
    model = image_net()
    return usual(model, after_backward=lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.05))


def batch_normalisation():
    return usual(image_net(nn.BatchNorm2d))


def schedulers():
    model = image_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for x, y in images():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        schedule.step()
    return [model]


def validation():
    model = image_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in images():
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x[:64]), y[:64]).item()
    return [model]


def two_optimizers():
    make = (
        nn.Sequential(
            nn.Linear(64, 3 * 32 * 32),
            nn.Unflatten(1, (3, 32, 32)),
            *[layer for _ in range(4) for layer in (nn.Conv2d(3, 3, 3, padding=1), nn.Tanh())],
        )
        .double()
        .cuda()
    )
    critic = image_net(out=1)
    of_make, of_critic = (torch.optim.SGD(m.parameters(), lr=0.01) for m in (make, critic))
    for x, _ in images():
        fake = make(torch.randn(rows, 64, generator=random).double().cuda())
        of_critic.zero_grad()
        (F.softplus(-critic(x)).mean() + F.softplus(critic(fake.detach())).mean()).backward()
        of_critic.step()
        of_make.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        of_make.step()
    return [make, critic]


def encoder_and_decoder():
    encoder = image_net(out=64)
    decoder = (
        nn.Sequential(
            nn.Linear(64, 3 * 32 * 32),
            nn.Unflatten(1, (3, 32, 32)),
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 3, 3, padding=1),
        )
        .double()
        .cuda()
    )
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.05)
    for x, _ in images():
        optimizer.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        optimizer.step()
    return [encoder, decoder]


def contrastive():
    model = image_net(out=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, _ in images():
        one, other = F.normalize(model(x)), F.normalize(model(x + 0.1))
        optimizer.zero_grad()
        F.cross_entropy(one @ other.T / 0.5, torch.arange(rows).cuda()).backward()
        optimizer.step()
    return [model]


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        self.tokens, self.body = nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(128, 1000)

    def forward(self, input_ids, labels):
        logits = self.head(self.body(self.tokens(input_ids)))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return {"loss": loss, "logits": logits}


def loss_within():
    model = WithLoss().double().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(STEPS):
        ids = torch.randint(1, 1000, (rows, 64), generator=random).cuda()
        labels = ids.clone()
        labels[::3, 20:] = -100
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels)["loss"].backward()
        optimizer.step()
    return [model]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(64, 256, 2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def lstm():
    model = Recurrent().double().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(STEPS):
        x = torch.randn(rows, 64, 64, generator=random).double().cuda()
        y = torch.randint(0, 10, (rows,), generator=random).cuda()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [model]


def mixed_precision():
    model = image_net().float()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.05), torch.amp.GradScaler("cuda", init_scale=1024.0)
    for x, y in images():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(x.float()), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return [model]


def language_model():
    """A model of a library that computes its loss within, AdamW with a schedule by steps, and clipping."""
    from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

    config = GPT2Config(
        vocab_size=2000, n_positions=128, n_embd=256, n_layer=4, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, attn_implementation="eager",
    )  # fmt: skip
    model = GPT2LMHeadModel(config).double().cuda()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, STEPS)
    for _ in range(STEPS):
        ids = torch.randint(0, 2000, (rows, 128), generator=random).cuda()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return [model]


class Segmentation(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first, self.second = self.block(3, width), self.block(width, 2 * width)
        self.up, self.last = nn.ConvTranspose2d(2 * width, width, 2, 2), self.block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(before, after):
        layers = [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.SiLU()]
        return nn.Sequential(*layers, nn.Conv2d(after, after, 3, padding=1), nn.SiLU())

    def forward(self, x):
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        return self.head(self.last(torch.cat([self.up(second), first], 1)))


def segmentation():
    """Pictures from loader workers in pinned memory, channels last, a loss of two parts, averages of the weights."""
    model = Segmentation().double().cuda().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(STEPS * rows, 3, 64, 64, generator=random)
    data = torch.utils.data.TensorDataset(x, (x[:, :1] > 0).float())
    loader = torch.utils.data.DataLoader(data, batch_size=rows, num_workers=2, pin_memory=True)
    for x, y in loader:
        x = x.to("cuda", torch.float64, non_blocking=True, memory_format=torch.channels_last)
        y = y.to("cuda", torch.float64, non_blocking=True)
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, y) + 0.1 * logits.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    return [model, average]


def accelerated():
    from accelerate import Accelerator

    accelerator = Accelerator()
    model = image_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = torch.randn(STEPS * rows, 3, 32, 32, generator=random).double()
    data = torch.utils.data.TensorDataset(x, torch.randint(0, 10, (STEPS * rows,), generator=random))
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=rows))
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
    return [model]


def compiled():
    model = image_net()
    fast = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in images():
        optimizer.zero_grad()
        F.cross_entropy(fast(x), y).backward()
        optimizer.step()
    return [model]


began = time.perf_counter()
trained = globals()[name]()
torch.cuda.synchronize()
seconds = time.perf_counter() - began
torch.save(torch.cat([p.detach().double().cpu().flatten() for model in trained for p in model.parameters()]), result)
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "seconds": seconds}))
