"""Steps for asyncio."""

from __future__ import annotations

import asyncio

from penstock._penstock import Loader, Step

SLICE_S = 0.1


class AsyncSteps:
    """What `async for step in loader` goes over. A task that is cancelled while it waits has lost no step."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __aiter__(self) -> AsyncSteps:
        return self

    async def __anext__(self) -> Step:
        while not self._loader.wait_for(0):
            await asyncio.get_running_loop().run_in_executor(None, self._loader.wait_for, SLICE_S)
        try:
            return next(self._loader)  # which is there
        except StopIteration:
            raise StopAsyncIteration from None
