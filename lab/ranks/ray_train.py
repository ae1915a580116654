"""Two workers of Ray Train; nothing in it knows of Holdfast. FAULT says what goes wrong with the second one."""

import os
import signal
import sys
import time
from pathlib import Path

import ray
import ray.train.torch
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from torch import nn


def loop(config):
    torch.set_num_threads(1)
    rank = ray.train.get_context().get_world_rank()
    model = ray.train.torch.prepare_model(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        time.sleep(0.05)
        if rank == 1 and step == 60:
            if config["fault"] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if config["fault"] == "raises":
                raise ValueError("the file of sample 4711 is empty")
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank} ends with {loss.item():.9g} after 100 steps", flush=True)


def main():
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=100 << 20, _temp_dir=sys.argv[1])
    run = RunConfig(storage_path=str(Path.cwd()), failure_config=FailureConfig(max_failures=0))
    fault = {"fault": os.environ.get("FAULT", "")}
    workers = ScalingConfig(num_workers=2)
    ray.train.torch.TorchTrainer(loop, train_loop_config=fault, scaling_config=workers, run_config=run).fit()


if __name__ == "__main__":
    main()
