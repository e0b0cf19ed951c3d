"""The exceptions that penstock raises beside ValueError, for misuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._penstock import Fault


class Error(RuntimeError):
    """Something outside the program went wrong: a file, a device, a limit."""


class DataError(Error):
    """A fault that the policy does not tolerate; raised at the step that the sample belongs to.

    What your map function raised, if that was it, is its __cause__.
    """

    fault: Fault
    """Which sample, which file, where in it, and why."""


class CudaError(Error):
    """A CUDA call failed, or CUDA cannot be used here at all."""

    code: int
    """The cudaError_t."""


class QueueClosed(Error):
    """The queue takes no more records; its __cause__ is what it was closed with."""


class SyncError(Error):
    """A collective failed: a peer died, timed out, ended, or made another call.

    The message names it.
    """


class NcclError(Error):
    """NCCL cannot be found, or one of its calls failed."""

    code: int
    """The ncclResult_t."""


for _error in (Error, DataError, CudaError, QueueClosed):
    _error.__module__ = "penstock"
for _error in (SyncError, NcclError):
    _error.__module__ = "penstock.sync"
