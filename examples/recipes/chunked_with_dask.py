"""An array larger than memory through dask, block by block.

The usual loop, `for row in array: row.compute()`, runs the graph once for each row: every row pays for its whole block. Blocks are what dask computes:
go over them (`array.blocks`), and cut batches from each.

Holdfast without this recipe: `holdfast.data.open(array, batch=32, shuffle=True)` takes dask and zarr arrays, computes each block once,
shuffles blocks and rows, reads ahead within a memory budget, and goes on at the same batch after a crash.
"""

import dask.array as da
import numpy as np

import holdfast.data

ROWS, BLOCK, BATCH = 600, 100, 32


def counted_array(computed):
    def load(block_info=None):
        first, last = block_info[None]["array-location"][0]
        computed.append(first)
        return np.arange(first, last, dtype="float32")[:, None] * np.ones(8, "float32")

    return da.map_blocks(
        load, chunks=((BLOCK,) * (ROWS // BLOCK), (8,)), dtype="float32", meta=np.empty((0, 0), "float32")
    )


def row_by_row(array, rows):
    """The usual way. It is slow."""
    for number in range(rows):
        yield array[number].compute(scheduler="synchronous")


def block_by_block(array):
    for number in range(array.numblocks[0]):
        block = array.blocks[number].compute(scheduler="synchronous")
        for at in range(0, len(block), BATCH):
            yield block[at : at + BATCH]


def main():
    usual, blocks, ours = [], [], []
    for _ in row_by_row(counted_array(usual), 50):
        pass
    rows = sum(len(batch) for batch in block_by_block(counted_array(blocks)))
    streamed = sum(len(batch) for batch in holdfast.data.open(counted_array(ours), batch=BATCH, shuffle=True, seed=1))
    return {
        "blocks_computed_for_50_rows_one_by_one": len(usual),
        "blocks_computed_for_all_rows": len(blocks),
        "blocks_computed_by_holdfast_data": len(ours),
        "rows": [rows, streamed],
    }


if __name__ == "__main__":
    print(main())
