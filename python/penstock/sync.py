"""All-reduces gradients across processes during the backward pass, for numpy and torch.

    from penstock.sync import GradientSync, connect, broadcast_state

    group = connect()                             # torchrun's variables; alone without them
    broadcast_state(model.state_dict(), group)         # all processes begin with process 0's weights
    sync = GradientSync([p.grad for p in model.parameters()], group)
    for batch in loader:
        loss_of(batch).backward()
        for index in reversed(range(len(sync))):
            sync.ready(index)
        sync.wait()                               # the gradients are the mean over all processes
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)    # their memory stays where it is

Over Gloo on the host and NCCL on CUDA devices, where this build has them: transports().
"""

from penstock._errors import NcclError, SyncError
from penstock._penstock import (
    Communicator,
    GradientSync,
    broadcast_state,
    connect,
    require_agreement,
    transports,
)

__all__ = [
    "connect",
    "Communicator",
    "GradientSync",
    "broadcast_state",
    "require_agreement",
    "transports",
    "SyncError",
    "NcclError",
]
