import ctypes

import torch
import torch.distributed as dist

BAD_FRAME = 12


def decode(rank, number):
    return bytes([number % 256] * 4)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, weights = dist.get_rank(), torch.zeros(64)
    for number in range(30):
        gradient = torch.full((64,), float(decode(rank, number)[0])) / 255
        dist.all_reduce(gradient)
        weights -= 0.01 * gradient
        if rank == 0 and number == 7:
            print("reduced a few times", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
