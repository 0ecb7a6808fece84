// Compiled without debug information: only the linker's public names are known, decorated ones among them.
typedef unsigned long long Size;
extern "C" volatile Size sink;
namespace net { struct Socket { Size send(Size); }; __attribute__((noinline)) Size Socket::send(Size n) { return sink + n; } }
extern "C" Size scripted(Size) __asm__("<script>alert('x')</script>");
extern "C" __attribute__((noinline)) Size scripted(Size n) { sink = n; return sink * 3; }
extern "C" Size hidden(Size n) { net::Socket s; return scripted(n) + s.send(n); }
extern "C" [[noreturn]] void stop() { for (;;) sink = 1; }
