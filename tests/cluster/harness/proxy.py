"""FlakyProxy: a TCP proxy on loopback between Berth and the API server; TLS passes through it unread.

    with FlakyProxy(port) as proxy:      # kubeconfig: https://127.0.0.1:{proxy.port}
        proxy.swallow_answers = True     # requests arrive, their answers do not: what became of a bind is unknown
        proxy.cut()                      # every open connection ends at once, mid-request
"""

from __future__ import annotations

import asyncio
import contextlib
import threading


class FlakyProxy:
    """Its attributes may be set from any thread at any time."""

    def __init__(self, target_port: int, port: int = 0):
        self._target = target_port
        self.port = port
        self.refuse = False  # accept and close at once
        self.swallow_answers = False
        self.delay_s = 0.0  # of every chunk of an answer
        self.cut_after_bytes: int | None = None  # a connection ends when so much of an answer has passed
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> FlakyProxy:
        self._thread.start()
        server = self._run(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self._server, self.port = server, server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_exception) -> None:
        async def end() -> None:
            self._server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def cut(self) -> None:
        """Ends every open connection with a reset."""

        async def cut() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        self._run(cut())

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refuse:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer, answers=False),
                                 self._pump(far_reader, writer, answers=True))  # fmt: skip
        except asyncio.CancelledError:
            pass  # __exit__: asyncio would call a cancelled connection an error
        finally:
            self._writers -= {writer, far_writer}
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        passed, swallowed = 0, False
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if answers and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                swallowed = swallowed or (answers and self.swallow_answers)
                if swallowed:
                    continue  # for good: a stream with a hole would be no TLS any more
                passed += len(data)
                if answers and self.cut_after_bytes is not None and passed > self.cut_after_bytes:
                    break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
