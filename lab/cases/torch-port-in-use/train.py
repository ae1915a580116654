import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
import torch.distributed as dist
from torch import nn

STATUS = {"step": 0}


class StatusPage(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"step {STATUS['step']}".encode())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    page = HTTPServer(("", 0), StatusPage)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    port = page.server_port
    print(f"status page on port {page.server_port}")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
    dist.init_process_group("gloo")
    torch.manual_seed(51)
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(200):
        STATUS["step"] = step
        x = torch.randn(32, 16)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
