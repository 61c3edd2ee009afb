from __future__ import annotations

import torch

# The thread count changes bits, and small networks are fastest with one.
torch.set_num_threads(1)
