"""Scenes of a game: a datagram reader that stalls, a chat whose small sends stall, and a heap that only churns."""

from collector.sample.heaps import Heap
from collector.sample.machine import SECOND, Machine, Steps
from collector.sample.programs import Cast, Stacks
from collector.sample.sockets import Option, Socket, Status

__all__ = ["GAME_SERVER", "Game"]

GAME_SERVER = "203.0.113.40:27015"
_CHAT_SERVER = "203.0.113.11:5222"


class Game:
    """The game with its heap."""

    def __init__(self, machine: Machine, cast: Cast) -> None:
        self.machine, self.program = machine, cast.game
        self.stacks = Stacks(cast.game)
        self.heap = Heap(machine, cast.game, 0x24C_1D80_0000)
        self.socket = Socket(machine, cast.game.thread("network"), is_datagram=True)

    def play(self) -> Steps:
        """Datagrams nine times a second into a buffer on the heap. From 18 to 20 s nobody reads: the rest is dropped."""
        machine, socket, thread = self.machine, self.socket, self.program.thread("network")
        receive = self.stacks.of("recv", "Net.Poll", "Game.Frame")
        yield from socket.open(self.stacks.of("socket", "Net.Start", "Game.Main"))
        yield from socket.option(Option.RECEIVE_BUFFER, 8192)
        yield from socket.bind("0.0.0.0:27005")
        yield from socket.option(Option.NON_BLOCKING, 1)
        buffer = self.heap.alloc(1400, thread, self.stacks.of("alloc", "Net.NewBuffer", "Net.Start"))
        n = 0
        while True:
            n += 1
            size = machine.random.randrange(180, 1100)
            if 18 * SECOND <= machine.now < 20 * SECOND:
                socket.drop(size, GAME_SERVER, 2)
                yield machine.about(50_000, 0.1)
                continue
            socket.data_arrives(size, GAME_SERVER)
            yield 80
            yield from socket.receive_from(1400, size, buffer, GAME_SERVER, stack=receive if n % 10 == 0 else ())
            if n % 3 == 0:
                yield from socket.send_to(60, thread.stack_base - 0x1800, GAME_SERVER, has_exit=n % 2 == 0)
            yield machine.about(110_000, 0.1)

    def too_small(self) -> Steps:
        """Three receives of 256 bytes for datagrams of 900: the rest of each is lost."""
        for _ in range(3):
            self.socket.data_arrives(900, GAME_SERVER)
            yield 60
            buffer = self.program.thread("network").stack_base - 0x2400
            yield from self.socket.receive_from(256, 256, buffer, GAME_SERVER, status=Status.BUFFER_OVERFLOW)
            yield 400_000

    def stray(self) -> Steps:
        """Datagrams of somebody else on a connected datagram socket."""
        socket = Socket(self.machine, self.program.thread("voice"), is_datagram=True)
        yield from socket.open()
        yield from socket.bind("10.20.0.5:27010")
        yield from socket.connect("203.0.113.41:27015", took_us=40)
        for _ in range(4):
            socket.drop(412, "198.51.100.250:33333", 1)
            yield 1_500_000
        yield 20 * SECOND
        yield from socket.close()

    def chat(self) -> Steps:
        """SO_SNDBUF 0 and two small sends a message: the second waits for the peer's delayed acknowledgement, about 200 ms."""
        machine, thread = self.machine, self.program.thread("chat")
        socket = Socket(machine, thread)
        stack = self.stacks.of("send", "Chat.Write", "Chat.Say")
        yield from socket.open(self.stacks.of("socket", "Chat.Connect", "Game.Main"))
        yield from socket.option(Option.SEND_BUFFER, 0)
        yield from socket.bind("10.20.0.5:49700", requested="0.0.0.0:0")
        yield from socket.connect(_CHAT_SERVER, took_us=31_000)
        head = self.heap.alloc(16, thread, self.stacks.of("alloc", "Chat.Head", "Chat.Say"))
        text = self.heap.alloc(64, thread, self.stacks.of("alloc", "Chat.Text", "Chat.Say"))
        for _ in range(24):
            first = socket.post_send(4, head, stack=stack)
            yield 350
            socket.complete(first, 4)
            yield 20
            second = socket.post_send(28, text, stack=stack)
            yield machine.about(201_000, 0.02)
            socket.complete(second, 28)
            yield machine.about(1_500)
            socket.data_arrives(12)
            yield 50
            yield from socket.receive(64, 12, text)
            yield machine.about(450_000)
        yield from socket.close()

    def frames(self) -> Steps:
        """Small blocks for each frame, freed with it; every eighth lives a few seconds longer, so that holes remain."""
        machine, thread = self.machine, self.program.thread("main")
        sites = [self.stacks.of("alloc", name, "Scene.Build", "Game.Frame") for name in ("Sprite.New", "Particle.New", "Label.New")]
        kept: list[int] = []
        while True:
            blocks = []
            for n in range(6):
                blocks.append(self.heap.alloc(machine.random.choice((24, 48, 96, 160, 640)), thread, sites[n % 3]))
                yield machine.about(40)
            yield machine.about(9_000)
            for n, block in enumerate(blocks):
                if n == 5 and machine.random.random() < 0.5:
                    kept.append(block)
                else:
                    self.heap.free(block, thread)
                yield machine.about(15)
            if len(kept) > 20:
                self.heap.free(kept.pop(0), thread)
            yield machine.about(600_000)
