"""Scenes of the shop's front end and its catalogue server: connections, and the ways in which they end."""

from collector.sample.heaps import Heap
from collector.sample.machine import SECOND, Context, Machine, Steps, Thread
from collector.sample.programs import Cast, Stacks
from collector.sample.sockets import Option, Socket, Status

__all__ = ["LISTENER", "LOCAL_LISTENER", "Web"]

OWN = "10.20.0.5"
LISTENER = "0.0.0.0:8443"
LOCAL_LISTENER = "127.0.0.1:9010"
_SITES = ("93.184.216.34:443", "198.51.100.14:443", "198.51.100.80:443", "203.0.113.77:443", "[2001:db8:20::80]:443")


class Web:
    """The two programs with their heaps and the listeners that several scenes share."""

    def __init__(self, machine: Machine, cast: Cast) -> None:
        self.machine = machine
        self.shop, self.catalog = cast.shop, cast.catalog
        self.shop_stacks, self.catalog_stacks = Stacks(cast.shop), Stacks(cast.catalog)
        self.heap = Heap(machine, cast.shop, 0x1E5_4A2B_0000)
        self.listener = Socket(machine, cast.catalog.thread("acceptor"))
        self.local_listener = Socket(machine, cast.catalog.thread("local acceptor"))

    def _open(self, thread: Thread, remote: str, what: str, *, took_us: float, status: int = 0, is_ex: bool = False) -> "Opening":
        return Opening(self, thread, remote, what, took_us, status, is_ex)

    # ------------------------------------------------------------------------------------------------ everyday traffic

    def browse(self, worker: str) -> Steps:
        """Request after request on fresh connections, each with a receive buffer of its own; half of the peers close first."""
        machine, thread = self.machine, self.shop.thread(worker)
        alloc = self.shop_stacks.of("alloc", "Http.NewBuffer", "Http.Request", "Page.Load")
        receive = self.shop_stacks.of("recv", "Http.ReadSome", "Http.Request", "Page.Load")
        while True:
            opening = self._open(thread, machine.random.choice(_SITES), "Page.Load", took_us=machine.about(22_000))
            yield from opening.run()
            socket = opening.socket
            buffer = self.heap.alloc(8192, thread, alloc)
            yield 20
            yield from socket.send(machine.random.randrange(320, 900), buffer)
            yield from socket.receive_nothing(8192)
            yield machine.about(30_000)
            for _ in range(machine.random.randrange(2, 5)):
                size = machine.random.choice((1460, 2920, 4380))
                socket.data_arrives(size)
                yield machine.about(60)
                yield from socket.receive(8192, size, buffer, stack=receive)
                yield machine.about(900)
            if machine.random.random() < 0.5:
                socket.peer_closes()
                yield machine.about(400)
            yield from socket.close(stack=self.shop_stacks.of("close", "Http.Finish", "Page.Load"))
            self.heap.free(buffer, thread)
            yield machine.about(1_300_000)

    # ------------------------------------------------------------------------------------------------ endings

    def reset_by_peer(self) -> Steps:
        """The peer resets while a receive waits."""
        thread = self.shop.thread("price feed")
        opening = self._open(thread, "203.0.113.21:8080", "Feed.Connect", took_us=18_000)
        yield from opening.run()
        socket = opening.socket
        buffer = self.heap.alloc(4096, thread, self.shop_stacks.of("alloc", "Feed.NewBuffer", "Feed.Run"))
        yield 50
        yield from socket.send(180, buffer)
        waiting = socket.post_receive(2048, buffer + 512, stack=self.shop_stacks.of("recv", "Feed.Wait", "Feed.Run"))
        yield 1_400_000
        socket.abort(4, 8028, context=self.machine.elsewhere())
        yield 3
        socket.complete(waiting, 0, status=Status.RESET)
        yield 900
        yield from socket.close()
        self.heap.free(buffer, thread)

    def closed_with_unread_data(self) -> Steps:
        """2,920 bytes arrive, 1,000 are read, then the socket is closed."""
        thread = self.shop.thread("image loader")
        opening = self._open(thread, "198.51.100.80:443", "Image.Load", took_us=16_000)
        yield from opening.run()
        socket = opening.socket
        buffer = self.heap.alloc(1024, thread, self.shop_stacks.of("alloc", "Image.Header", "Image.Load"))
        yield from socket.send(240, buffer)
        yield 25_000
        socket.data_arrives(2920)
        yield 70
        yield from socket.receive(1000, 1000, buffer)
        yield 3_000
        yield from socket.begin_close()
        socket.abort(7, 8000)
        yield 4
        yield from socket.finish_close()
        self.heap.free(buffer, thread)

    def abortive_disconnect(self) -> Steps:
        """The program asks for a reset."""
        thread = self.shop.thread("image loader")
        opening = self._open(thread, "198.51.100.14:443", "Image.Load", took_us=17_000)
        yield from opening.run()
        yield from opening.socket.send(240, 0x7FF6_4005_2000)  # static data of the program
        yield 80_000
        opening.socket.abort(2, 8003)
        yield 5
        yield from opening.socket.close()

    def delivery_failed(self) -> Steps:
        """A send succeeded, as it was copied; delivering the copy fails later."""
        thread = self.shop.thread("uploader")
        opening = self._open(thread, "192.0.2.140:443", "Upload.Run", took_us=40_000)
        yield from opening.run()
        socket = opening.socket
        buffer = self.heap.alloc(16_384, thread, self.shop_stacks.of("alloc", "Upload.NewBuffer", "Upload.Run"))
        yield from socket.send(16_384, buffer, is_delivered=False)
        yield 2_100_000
        socket.abort(15, 8022, context=self.machine.elsewhere())
        yield 40
        yield from socket.close()
        self.heap.free(buffer, thread)

    def shut_down_with_data(self) -> Steps:
        """The receive side is shut down although 1,460 bytes wait."""
        thread = self.shop.thread("uploader")
        opening = self._open(thread, "192.0.2.141:443", "Upload.Run", took_us=40_000)
        yield from opening.run()
        opening.socket.data_arrives(1460)
        yield 2_000
        opening.socket.abort(3, 8004)
        yield 20
        yield from opening.socket.close()

    def no_connection(self, remote: str, *, took_us: float, status: int) -> Steps:
        """A connect that fails: refused, timed out, or unreachable."""
        opening = self._open(self.shop.thread(f"dial {remote}"), remote, "Dial", took_us=took_us, status=status, is_ex=True)
        yield from opening.run()
        yield 500
        yield from opening.socket.close()

    def adapter_goes_away(self) -> Steps:
        """Three connections wait for data when their network adapter is removed."""
        thread = self.shop.thread("notifier")
        waiting = []
        for port in (5228, 5229, 5230):
            opening = self._open(thread, f"203.0.113.90:{port}", "Notify.Connect", took_us=21_000)
            yield from opening.run()
            waiting.append((opening.socket, opening.socket.post_receive(2048)))
            yield 100_000
        yield 9 * SECOND
        for socket, request in waiting:
            socket.abort(19, 0, context=Context(4, 88, 1))
            yield 2
            socket.complete(request, 0, status=Status.ABORTED)
            yield 5
        for socket, _ in waiting:
            yield 200
            yield from socket.close()

    # ------------------------------------------------------------------------------------------------ never closed

    def forget_thumbnails(self) -> Steps:
        """Every two seconds a connection that nobody closes: for every third one the peer has finished (CLOSE_WAIT), others wait on."""
        machine, thread = self.machine, self.shop.thread("thumbnails")
        for n in range(26):
            opening = self._open(thread, "198.51.100.33:443", "Thumbnail.Fetch", took_us=machine.about(15_000))
            yield from opening.run()
            buffer = self.heap.alloc(2048, thread, self.shop_stacks.of("alloc", "Thumbnail.NewBuffer", "Thumbnail.Fetch"))
            yield from opening.socket.send(210, buffer)
            yield machine.about(25_000)
            opening.socket.data_arrives(1460)
            yield 60
            yield from opening.socket.receive(2048, 1460, buffer)
            self.heap.free(buffer, thread)
            if n % 3 == 0:
                yield 5_000
                opening.socket.peer_closes()
            else:
                opening.socket.post_receive(2048, stack=self.shop_stacks.of("recv", "Thumbnail.Next", "Thumbnail.Fetch"))
            yield machine.about(1_950_000, 0.02)

    # ------------------------------------------------------------------------------------------------ the server

    def serve(self) -> Steps:
        """The public listener with room for eight, accepting with AcceptEx; it stops accepting from 28 to 32 s."""
        machine, listener, thread = self.machine, self.listener, self.catalog.thread("acceptor")
        stack = self.catalog_stacks.of("accept", "Server.PostAccept", "Server.Run")
        yield from listener.open(self.catalog_stacks.of("socket", "Server.Listen", "Server.Run"))
        yield from listener.bind(LISTENER)
        yield from listener.listen(8)
        backlog: list[str] = []
        ready: Socket | None = None
        client = 0
        while True:
            is_stalled = 28 * SECOND <= machine.now < 32 * SECOND
            if ready is None and not is_stalled:
                ready = Socket(machine, thread)
                yield from ready.open()
                listener.post_accept(stack=stack)
                yield 10
            peer = f"203.0.113.{150 + client % 40}:{49_200 + client * 7}"
            if len(backlog) < 8:
                listener.connection_arrives(peer, len(backlog))
                backlog.append(peer)
            else:
                listener.connection_refused()
                listener.abort(9, 8029, context=machine.elsewhere())
            yield 15
            while backlog and ready is not None:
                listener.accepted(ready, backlog.pop(0), len(backlog))
                machine.start(self._answer(ready, f"worker {client % 3}"), at_us=machine.now + 50)
                ready = None
                if not is_stalled and backlog:
                    yield 900
                    ready = Socket(machine, thread)
                    yield from ready.open()
                    listener.post_accept(stack=stack)
                    yield 10
            client += 1
            yield machine.about(330_000)

    def _answer(self, socket: Socket, worker: str) -> Steps:
        """One request of a client of the server: a pending receive, an answer, the end."""
        machine = self.machine
        socket.thread = self.catalog.thread(worker)
        waiting = socket.post_receive(4096, stack=self.catalog_stacks.of("recv", "Server.Read", "Server.Worker"))
        yield machine.about(7_000)
        size = machine.random.randrange(200, 1400)
        socket.data_arrives(size)
        yield 12
        socket.complete(waiting, size)
        yield machine.about(1_500)
        yield from socket.send(machine.random.randrange(800, 9000), socket.thread.stack_base - 0x6000)
        yield machine.about(9_000)
        socket.peer_closes()
        yield 100
        yield from socket.close()

    def local_pair(self) -> Steps:
        """Both ends of a connection on this machine: the front end asks the server 90 times."""
        machine = self.machine
        listener, client_thread = self.local_listener, self.shop.thread("catalogue client")
        yield from listener.open()
        yield from listener.bind(LOCAL_LISTENER)
        yield from listener.listen(2)
        server = Socket(machine, self.catalog.thread("local worker"))
        yield from server.open()
        listener.post_accept()
        yield 400_000
        client = Socket(machine, client_thread)
        yield from client.open(self.shop_stacks.of("socket", "Catalogue.Connect", "Shop.Main"))
        yield from client.bind("127.0.0.1:49820", requested="127.0.0.1:0")
        connecting = client.connect(LOCAL_LISTENER, took_us=55)
        yield next(connecting) / 2
        listener.connection_arrives("127.0.0.1:49820", 0)
        yield 5
        listener.accepted(server, "127.0.0.1:49820", 0)
        yield 25
        yield from connecting
        out, back = self.heap.alloc(512, client_thread), self.heap.alloc(32_768, client_thread)
        for _ in range(90):
            asked, got = machine.random.randrange(60, 200), machine.random.randrange(400, 2400)
            yield from client.send(asked, out)
            server.data_arrives(asked)
            yield 20
            yield from server.receive(512, asked, 0x22A_0000_4000)
            yield machine.about(250)
            yield from server.send(got, 0x22A_0000_8000)
            client.data_arrives(got)
            yield 15
            yield from client.receive(32_768, got, back)
            yield machine.about(530_000)
        yield from client.close()
        server.peer_closes()
        yield 40
        yield from server.close()
        self.heap.free(out, client_thread)
        self.heap.free(back, client_thread)


class Opening:
    """A client socket: created, set up, bound to a port of the dynamic range, and connected or not."""

    def __init__(self, web: Web, thread: Thread, remote: str, what: str, took_us: float, status: int, is_ex: bool) -> None:
        self.socket = Socket(web.machine, thread, family=23 if remote.startswith("[") else 2)
        self._web, self._remote, self._what = web, remote, what
        self._took_us, self._status, self._is_ex = took_us, status, is_ex

    def run(self) -> Steps:
        socket, stacks = self.socket, self._web.shop_stacks
        yield from socket.open(stacks.of("socket", "Net.Open", self._what))
        yield from socket.option(Option.NON_BLOCKING, 1)
        host = "[2001:db8:20::5]" if socket.family == 23 else OWN
        anywhere = "[::]" if socket.family == 23 else "0.0.0.0"
        yield from socket.bind(f"{host}:{self._web.machine.take_port()}", requested=f"{anywhere}:0")
        stack = stacks.of("connect", "Net.Open", self._what)
        yield from socket.connect(self._remote, took_us=self._took_us, status=self._status, is_ex=self._is_ex, stack=stack)
