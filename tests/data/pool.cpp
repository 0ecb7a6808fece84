// The program behind pool.pdb: a template, an inlined call, a call that never returns, recursion.
typedef unsigned long long Size;

extern "C" volatile Size sink = 0;
extern "C" [[noreturn]] void stop();
extern "C" Size hidden(Size);

struct Block {
  Size bytes;
};

template <typename Item, int count> struct Pool {
  Size held;
  __attribute__((noinline)) Size grow(Item item) {
    held += item.bytes;
    sink = held;
    return hidden(held) + count;
  }
};

static inline __attribute__((always_inline)) Size round_up(Size bytes) {
  sink = bytes;
  return (hidden(bytes) + 15) & ~15ull;
}

namespace cache {
__attribute__((noinline)) Size fill(Pool<Block &, 64> &pool, Size bytes) {
  Block block = {round_up(bytes)};
  return pool.grow(block) + 1;
}
} // namespace cache

__attribute__((noinline)) Size walk(Pool<Block &, 64> &pool, Size depth) {
  if (depth == 0)
    return cache::fill(pool, 4096);
  return walk(pool, depth - 1) + depth;
}

__attribute__((noinline)) void fail() { stop(); }

extern "C" int start() {
  Pool<Block &, 64> pool = {0};
  sink = walk(pool, sink);
  if (sink > 99)
    fail();
  return (int)sink;
}
