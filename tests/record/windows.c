/* Plays the Windows functions that sockscope calls, for the tests: it writes every call with its bytes into a log, answers what the test
 * has scripted, and keeps sessions as the system does, in a file, so that they outlive the process that began them.
 *
 * Compiled natively: arguments arrive as the ctypes prototypes of this machine pass them. Offsets stand as numbers on purpose: they come
 * from the documentation and not from the declarations that are tested.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

enum { MOST = 64, NAME = 1024, PATH = 1024 };
enum { SUCCESS = 0, ALREADY_EXISTS = 183, MORE_DATA = 234, INVALID_PARAMETER = 87, BAD_LENGTH = 24, NO_SUCH_SESSION = 4201 };

struct session {
  u64 handle;
  u32 is_running, is_heap, queries, pieces;
  u8 properties[120];
  u16 name[NAME];
  u16 file[PATH];
};
struct world {
  u32 count, suspended_pid;
  u64 next_handle;
  struct session sessions[MOST];
};

static struct world *world;
static FILE *log_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u32 last_error;

/* What the test scripts: answers in turn, per function; the last of `losses` stays. */
static struct { char call[32]; u32 codes[32]; u32 given, used; } scripts[64];
static struct { u32 events, buffers, real_time; } losses[64];
static u32 loss_count;
static u64 next_start_handle = ~(u64)1; /* unless set: handles are counted */
static u32 runs_for = 3, exit_code = 0, new_pid = 4242, is_elevated = 1, open_handles, is_terminated, ends_after;
static u32 living[64], living_count;
static int (*console_handler)(u32);
/* What sessions deliver whose names end so, and who reads them. */
static struct { char suffix[32], path[1024]; u8 header[280]; } streams[8];
static u32 stream_count, waits_for_the_end;
static struct reader { u64 handle; u8 logfile[448]; u64 session; char path[1024]; volatile u32 is_closed; } readers[8];
static u32 reader_count;
static u64 next_open_handle = ~(u64)1; /* unless set: they are counted */
static struct { char suffix[32], path[1024]; } files[8];
static u32 file_count;

static u32 get32(const void *at) { u32 v; memcpy(&v, at, 4); return v; }
static u64 get64(const void *at) { u64 v; memcpy(&v, at, 8); return v; }
static void put32(void *at, u32 v) { memcpy(at, &v, 4); }

static void hex(const char *key, const void *bytes, size_t size) {
  fprintf(log_file, ", \"%s\": \"", key);
  for (size_t i = 0; i < size; i++) fprintf(log_file, "%02x", ((const u8 *)bytes)[i]);
  fputc('"', log_file);
}

static size_t length(const u16 *text) { size_t n = 0; while (text[n]) n++; return n; }

static void text(const char *key, const u16 *value) {
  if (value) hex(key, value, 2 * length(value));
  else fprintf(log_file, ", \"%s\": null", key);
}

static void number(const char *key, u64 value) { fprintf(log_file, ", \"%s\": %llu", key, (unsigned long long)value); }

static void begin(const char *call) {
  pthread_mutex_lock(&lock);
  fprintf(log_file, "{\"call\": \"%s\"", call);
}

static u32 end(u32 code) {
  fprintf(log_file, ", \"returned\": %u}\n", code);
  fflush(log_file);
  pthread_mutex_unlock(&lock);
  return code;
}

/* The scripted answer of a call, or `otherwise`. */
static u32 scripted(const char *call, u32 otherwise) {
  for (u32 i = 0; i < 64 && scripts[i].call[0]; i++)
    if (!strcmp(scripts[i].call, call) && scripts[i].used < scripts[i].given) {
      u32 code = scripts[i].codes[scripts[i].used++];
      return code == 0xFFFFFFFF ? otherwise : code;
    }
  return otherwise;
}

/* ---- what the tests call ---- */

void play_reset(const char *world_path, const char *log_path) {
  int file = open(world_path, O_RDWR | O_CREAT, 0600);
  if (world) munmap(world, sizeof *world);
  if (ftruncate(file, sizeof *world)) abort();
  world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (log_file) fclose(log_file);
  log_file = fopen(log_path, "a");
  memset(scripts, 0, sizeof scripts);
  loss_count = 0;
  next_start_handle = ~(u64)1;
  runs_for = 3, exit_code = 0, new_pid = 4242, is_elevated = 1, open_handles = 0, is_terminated = 0, ends_after = 0;
  living_count = 0;
  file_count = 0;
  stream_count = reader_count = waits_for_the_end = 0;
  next_open_handle = ~(u64)1;
  console_handler = NULL;
  last_error = 0;
}

/* A process that nobody has set up sees the sessions of the folder that its environment names. */
__attribute__((constructor)) static void join_in(void) {
  const char *folder = getenv("PLAYED_FOLDER");
  char sessions[1024], calls[1024];
  if (!folder) return;
  snprintf(sessions, sizeof sessions, "%s/sessions", folder), snprintf(calls, sizeof calls, "%s/calls.jsonl", folder);
  play_reset(sessions, calls);
}

void play_answer(const char *call, u32 code) {
  for (u32 i = 0; i < 64; i++) {
    if (!scripts[i].call[0]) strncpy(scripts[i].call, call, 31);
    if (!strcmp(scripts[i].call, call)) {
      scripts[i].codes[scripts[i].given++] = code;
      return;
    }
  }
}

void play_loss(u32 events, u32 buffers, u32 real_time) {
  losses[loss_count].events = events;
  losses[loss_count].buffers = buffers;
  losses[loss_count++].real_time = real_time;
}

void play_handle(u64 handle) { next_start_handle = handle; }
void play_open_handle(u64 handle) { next_open_handle = handle; }
void play_process(u32 pid, u32 waits, u32 code) { new_pid = pid, runs_for = waits, exit_code = code; }
void play_living(u32 pid) { living[living_count++] = pid; }
void play_elevated(u32 value) { is_elevated = value; }
void play_session_ends_after(u32 queries) { ends_after = queries; }
void play_file(const char *suffix, const char *path) {
  strncpy(files[file_count].suffix, suffix, 31);
  strncpy(files[file_count++].path, path, 1023);
}
/* What ProcessTrace delivers: for each record its EVENT_HEADER (80 bytes) and ETW_BUFFER_CONTEXT (4), u16 number of extended items, u16 size
 * of the payload; each item as u16 type, u16 size, bytes; the payload. */
void play_records(const char *suffix, const char *path, const u8 *header) {
  strncpy(streams[stream_count].suffix, suffix, 31);
  strncpy(streams[stream_count].path, path, 1023);
  memcpy(streams[stream_count++].header, header, sizeof streams[0].header);
}
/* ProcessTrace returns when the session was stopped or its reader closed, as it does on Windows, and not when all is delivered. */
void play_wait_for_the_end(void) { waits_for_the_end = 1; }
u32 played_handles(void) { return open_handles; }
u32 played_suspended(void) { return world->suspended_pid != 0; }
u32 played_running(void) {
  u32 n = 0;
  for (u32 i = 0; i < world->count; i++) n += world->sessions[i].is_running;
  return n;
}
int play_console(u32 event) { return console_handler ? console_handler(event) : -1; }

/* Writes the file that the test has prepared for names that end so; names here are ASCII. Returns whether there is one. */
static int write_file(const u16 *name) {
  char path[PATH + 1] = {0};
  size_t size = length(name);
  for (size_t i = 0; i < size && i < PATH; i++) path[i] = (char)name[i];
  for (u32 i = 0; i < file_count; i++) {
    size_t suffix = strlen(files[i].suffix);
    if (size < suffix || strcmp(path + size - suffix, files[i].suffix)) continue;
    FILE *from = fopen(files[i].path, "rb"), *to = fopen(path, "wb");
    for (int c; (c = fgetc(from)) != EOF;) fputc(c, to);
    fclose(from), fclose(to);
    return 1;
  }
  return 0;
}

/* A session that begins new files: the next one, with its number in place of the %d; no more than the test has prepared. */
static int begin_file(struct session *s) {
  u16 name[PATH] = {0};
  size_t size = 0;
  char number[12];
  snprintf(number, sizeof number, "%u", s->pieces + 1);
  for (const u16 *c = s->file; *c; c++) {
    if (c[0] != '%' || c[1] != 'd') {
      name[size++] = *c;
      continue;
    }
    for (const char *digit = number; *digit; digit++) name[size++] = (u8)*digit;
    c++;
  }
  if (!write_file(name)) return 0;
  s->pieces++;
  return 1;
}

/* ---- sessions ---- */

static u32 total(const u8 *properties) { return get32(properties); }
static u32 file_at(const u8 *properties) { return get32(properties + 112); }
static u32 name_at(const u8 *properties) { return get32(properties + 116); }

static struct session *find(u64 handle, const u16 *name) {
  for (u32 i = 0; i < world->count; i++) {
    struct session *s = &world->sessions[i];
    if (!s->is_running) continue;
    if (handle ? s->handle == handle : name && length(s->name) == length(name) && !memcmp(s->name, name, 2 * length(name))) return s;
  }
  return NULL;
}

enum { SEQUENTIAL = 1, CIRCULAR = 2, APPEND = 4, NEWFILE = 8, SYSTEM_LOGGER = 0x2000000 };

/* New files need a size and one %d in their name; they go with no other mode of files and are not for sessions of the kernel. */
static int may_begin_files(const u8 *properties, int is_heap) {
  if (is_heap || !get32(properties + 60) || !file_at(properties)) return 0;
  if (get32(properties + 64) & (SEQUENTIAL | CIRCULAR | APPEND | SYSTEM_LOGGER)) return 0;
  u32 percents = 0, numbers = 0;
  for (const u16 *c = (const u16 *)(properties + file_at(properties)); *c; c++) percents += *c == '%', numbers += *c == '%' && c[1] == 'd';
  return percents == 1 && numbers == 1;
}

static u32 start(u64 *handle, u8 *properties, const u16 *name, int is_heap) {
  if (total(properties) < 120 || name_at(properties) < 120 || name_at(properties) + 2 * (length(name) + 1) > total(properties)) return BAD_LENGTH;
  if (file_at(properties) && (file_at(properties) < 120 || file_at(properties) >= total(properties))) return BAD_LENGTH;
  if (find(0, name)) return ALREADY_EXISTS;
  if (get32(properties + 64) & NEWFILE && !may_begin_files(properties, is_heap)) return INVALID_PARAMETER;
  struct session *s = &world->sessions[world->count++ % MOST];
  memset(s, 0, sizeof *s);
  s->is_running = 1, s->is_heap = (u32)is_heap;
  s->handle = next_start_handle == ~(u64)1 ? 0x7000 + ++world->next_handle : next_start_handle;
  memcpy(s->name, name, 2 * length(name));
  if (file_at(properties)) memcpy(s->file, properties + file_at(properties), 2 * length((u16 *)(properties + file_at(properties))));
  /* The system writes the name to its place, and raises buffers to two a processor. */
  memcpy(properties + name_at(properties), name, 2 * (length(name) + 1));
  if (get32(properties + 52) < 8) put32(properties + 52, 8);
  if (get32(properties + 56) < get32(properties + 52)) put32(properties + 56, get32(properties + 52));
  if (is_heap) memset(properties + 24, 0x6a, 16); /* its own Guid, whatever was given */
  memcpy(s->properties, properties, 120);
  if (get32(properties + 64) & NEWFILE) begin_file(s);
  else if (file_at(properties)) write_file((u16 *)(properties + file_at(properties)));
  *handle = s->handle;
  return SUCCESS;
}

u32 StartTraceW(u64 *handle, const u16 *name, u8 *properties) {
  begin("StartTraceW");
  text("name", name), hex("properties", properties, total(properties));
  u32 code = scripted("StartTraceW", SUCCESS);
  *handle = 0xDEADDEADDEADDEAD; /* not to be used after a failure */
  return end(code ? code : start(handle, properties, name, 0));
}

static void answer(struct session *s, u8 *properties) {
  u32 size = total(properties), at_file = file_at(properties), at_name = name_at(properties);
  memcpy(properties, s->properties, 120);
  put32(properties, size), put32(properties + 112, at_file), put32(properties + 116, at_name);
  if (at_name && at_name + 2 * (length(s->name) + 1) <= size) memcpy(properties + at_name, s->name, 2 * (length(s->name) + 1));
  if (at_file && at_file + 2 * (length(s->file) + 1) <= size) memcpy(properties + at_file, s->file, 2 * (length(s->file) + 1));
  put32(properties + 80, get32(properties + 52));
  put32(properties + 84, get32(properties + 52) / 2);
  put32(properties + 92, 7 * s->queries);
  if (loss_count) {
    u32 i = s->queries < loss_count ? s->queries : loss_count - 1;
    put32(properties + 88, losses[i].events), put32(properties + 96, losses[i].buffers), put32(properties + 100, losses[i].real_time);
  }
}

u32 ControlTraceW(u64 handle, const u16 *name, u8 *properties, u32 control) {
  static const char *const calls[] = {"Query", "Stop", "Update", "Flush"};
  begin("ControlTraceW");
  number("handle", handle), text("name", name), hex("properties", properties, total(properties)), number("control", control);
  u32 code = scripted(calls[control & 3], SUCCESS);
  struct session *s = find(handle, name);
  if (!s) return end(code ? code : NO_SUCH_SESSION);
  int is_rotating = (get32(s->properties + 64) & NEWFILE) != 0;
  if (control == 1 && (code == SUCCESS || code == MORE_DATA)) {
    s->is_running = 0; /* stopped all the same */
    while (is_rotating && begin_file(s)) {}
  }
  if (code) return end(code);
  if (control == 0) {
    s->queries++;
    if (is_rotating) begin_file(s); /* it is full each time that somebody looks */
    if (ends_after && s->queries > ends_after) {
      s->is_running = 0;
      return end(NO_SUCH_SESSION);
    }
  }
  answer(s, properties);
  return end(SUCCESS);
}

u32 EnableTraceEx2(u64 handle, const u8 *provider, u32 control, u8 level, u64 any, u64 all, u32 timeout, const u8 *parameters) {
  begin("EnableTraceEx2");
  number("handle", handle), hex("provider", provider, 16), number("code", control), number("level", level), number("any", any);
  number("all", all), number("timeout", timeout);
  if (parameters) {
    hex("parameters", parameters, 48);
    u32 filters = get32(parameters + 40);
    for (u32 i = 0; i < filters; i++) {
      const u8 *filter = (const u8 *)(uintptr_t)get64(parameters + 32) + 16 * i;
      number("filter_type", get32(filter + 12)), hex("filter", (const void *)(uintptr_t)get64(filter), get32(filter + 8));
    }
  }
  return end(scripted("EnableTraceEx2", find(handle, NULL) ? SUCCESS : INVALID_PARAMETER));
}

u32 QueryAllTracesW(u8 **array, u32 room, u32 *count) {
  begin("QueryAllTracesW");
  number("room", room);
  u32 n = 0;
  for (u32 i = 0; i < world->count; i++)
    if (world->sessions[i].is_running) {
      if (n < room) answer(&world->sessions[i], array[n]);
      n++;
    }
  *count = n;
  return end(scripted("QueryAllTracesW", n > room ? MORE_DATA : SUCCESS));
}

static void heap_arguments(const u32 *pids, u32 pid_count, const u8 *ids, u32 id_count) {
  if (pids) hex("pids", pids, 4 * (size_t)pid_count);
  number("pid_count", pid_count);
  if (ids) hex("stack_ids", ids, 24 * (size_t)id_count);
  number("stack_id_count", id_count);
}

u32 StartHeapTrace(u64 *handle, u8 *properties, const u16 *name, const u32 *pids, u32 pid_count, const u8 *ids, u32 id_count) {
  begin("StartHeapTrace");
  text("name", name), hex("properties", properties, total(properties)), heap_arguments(pids, pid_count, ids, id_count);
  u32 code = scripted("StartHeapTrace", SUCCESS);
  *handle = 0xDEADDEADDEADDEAD;
  if (!code)
    for (u32 i = 0; i < world->count; i++)
      if (world->sessions[i].is_running && world->sessions[i].is_heap) code = ALREADY_EXISTS;
  return end(code ? code : start(handle, properties, name, 1));
}

u32 UpdateHeapTrace(u8 *properties, const u16 *name, const u32 *pids, u32 pid_count, const u8 *ids, u32 id_count) {
  begin("UpdateHeapTrace");
  hex("properties", properties, total(properties)), text("name", name), heap_arguments(pids, pid_count, ids, id_count);
  return end(scripted("UpdateHeapTrace", find(0, name) ? SUCCESS : NO_SUCH_SESSION));
}

u32 CreateMergedTraceFile(const u16 *merged, const u16 *const *files, u32 count, u32 flags) {
  begin("CreateMergedTraceFile");
  text("merged", merged), number("count", count), number("flags", flags);
  for (u32 i = 0; i < count; i++) {
    char key[16];
    snprintf(key, sizeof key, "file%u", i);
    text(key, files[i]);
  }
  u32 code = scripted("CreateMergedTraceFile", SUCCESS);
  if (!code) write_file(merged);
  return end(code);
}

/* ---- reading in real time ---- */

static int ends_so(const u16 *name, const char *suffix) {
  size_t size = length(name), end = strlen(suffix);
  for (size_t i = 0; i < end; i++)
    if (size < end || name[size - end + i] != (u8)suffix[i]) return 0;
  return 1;
}

u64 OpenTraceW(u8 *logfile) {
  begin("OpenTraceW");
  u16 *file, *logger;
  memcpy(&file, logfile, 8), memcpy(&logger, logfile + 8, 8);
  text("file", file), text("logger", logger), number("mode", get32(logfile + 28));
  last_error = scripted("OpenTraceW", logger && !find(0, logger) ? NO_SUCH_SESSION : SUCCESS);
  u64 handle = last_error && next_open_handle != ~(u64)1 ? next_open_handle : ~(u64)0;
  if (!last_error) {
    struct reader *r = &readers[reader_count % 8];
    struct session *s = find(0, logger);
    memset(r, 0, sizeof *r);
    memcpy(r->logfile, logfile, sizeof r->logfile);
    r->session = s ? s->handle : 0;
    for (u32 i = 0; i < stream_count; i++)
      if (ends_so(logger, streams[i].suffix)) strcpy(r->path, streams[i].path), memcpy(logfile + 120, streams[i].header, 280);
    handle = r->handle = next_open_handle == ~(u64)1 ? 0x9000 + reader_count % 8 : next_open_handle;
    reader_count++;
  }
  end(last_error);
  return handle;
}

static struct reader *reader_of(u64 handle) {
  for (u32 i = 0; i < reader_count && i < 8; i++)
    if (readers[i].handle == handle) return &readers[i];
  abort(); /* the caller made a handle up */
}

/* Delivers the records of a file, from memory that is overwritten after each. */
static void deliver(const struct reader *r) {
  void (*on_record)(u8 *);
  memcpy(&on_record, r->logfile + 424, 8);
  FILE *file = r->path[0] ? fopen(r->path, "rb") : NULL;
  u8 head[88], *data = malloc(1 << 20);
  while (file && fread(head, sizeof head, 1, file) == 1) {
    u8 record[112] = {0}, items[16 * 64] = {0}, *at = data;
    u16 item_count, size;
    memcpy(&item_count, head + 84, 2), memcpy(&size, head + 86, 2);
    memcpy(record, head, 88);
    for (u16 i = 0; i < item_count; i++) {
      u16 item[2];
      if (fread(item, 4, 1, file) != 1 || (item[1] && fread(at, item[1], 1, file) != 1)) break;
      u64 address = (u64)(uintptr_t)at;
      memcpy(items + 16 * i + 2, &item[0], 2), memcpy(items + 16 * i + 6, &item[1], 2), memcpy(items + 16 * i + 8, &address, 8);
      at += (item[1] + 7) & ~7;
    }
    if (size && fread(at, size, 1, file) != 1) break;
    u64 pointers[3] = {(u64)(uintptr_t)items, (u64)(uintptr_t)at, get64(r->logfile + 440)};
    memcpy(record + 88, pointers, sizeof pointers);
    on_record(record);
    memset(data, 0xCC, (size_t)(at - data) + size); /* what the callback did not copy is gone */
  }
  if (file) fclose(file);
  free(data);
}

u32 ProcessTrace(const u64 *handles, u32 count, const u64 *from, const u64 *to) {
  begin("ProcessTrace");
  number("handle", handles[0]), number("count", count), number("from", from ? *from : 0), number("to", to ? *to : 0);
  u32 code = end(scripted("ProcessTrace", SUCCESS));
  const struct reader *r = reader_of(handles[0]);
  u32 (*on_buffer)(u8 *);
  memcpy(&on_buffer, r->logfile + 400, 8);
  if (!code) deliver(r);
  while (!code && waits_for_the_end && !r->is_closed && find(r->session, NULL)) usleep(1000);
  if (!code && on_buffer && !on_buffer((u8 *)r->logfile)) return 1223;
  return code;
}

u32 CloseTrace(u64 handle) {
  begin("CloseTrace");
  number("handle", handle);
  reader_of(handle)->is_closed = 1;
  return end(scripted("CloseTrace", SUCCESS));
}

/* ---- processes ---- */

enum { PROCESS = 0x1000, THREAD = 0x2000, TOKEN = 0x3000, OTHER = 0x4000 };

static u32 failed(const char *call, u32 code) {
  (void)call;
  last_error = code;
  return code ? 0 : 1;
}

u32 GetLastError(void) { return last_error; }

int CreateProcessW(const u16 *application, u16 *line, void *pa, void *ta, int inherit, u32 flags, void *environment, const u16 *folder,
                   const u8 *startup, u8 *information) {
  begin("CreateProcessW");
  (void)pa, (void)ta, (void)environment;
  text("application", application), text("line", line), number("inherit", (u64)inherit), number("flags", flags), text("folder", folder);
  hex("startup", startup, get32(startup));
  u32 code = scripted("CreateProcessW", SUCCESS);
  if (!code) {
    u64 handles[2] = {PROCESS, THREAD};
    memcpy(information, handles, 16), put32(information + 16, new_pid), put32(information + 20, new_pid + 4);
    open_handles += 2, is_terminated = 0;
    world->suspended_pid = flags & 4 ? new_pid : 0;
    living[living_count++] = new_pid;
  }
  end(code);
  return (int)failed("CreateProcessW", code);
}

u32 ResumeThread(void *thread) {
  begin("ResumeThread");
  number("thread", (u64)(uintptr_t)thread);
  u32 code = scripted("ResumeThread", SUCCESS);
  last_error = code;
  u32 before = world->suspended_pid != 0;
  if (!code) world->suspended_pid = 0;
  end(code);
  return code ? 0xFFFFFFFF : before;
}

int TerminateProcess(void *process, u32 code) {
  begin("TerminateProcess");
  number("process", (u64)(uintptr_t)process), number("code", code);
  is_terminated = 1, world->suspended_pid = 0;
  end(0);
  return 1;
}

u32 WaitForSingleObject(void *object, u32 timeout) {
  begin("WaitForSingleObject");
  number("object", (u64)(uintptr_t)object), number("timeout", timeout);
  u32 is_over = is_terminated || (!world->suspended_pid && runs_for == 0);
  if (!is_over && !world->suspended_pid) runs_for--;
  return end(is_over ? 0 : 258);
}

int GetExitCodeProcess(void *process, u32 *code) {
  begin("GetExitCodeProcess");
  number("process", (u64)(uintptr_t)process);
  *code = exit_code;
  end(0);
  return 1;
}

void *OpenProcess(u32 access, int inherit, u32 pid) {
  begin("OpenProcess");
  number("access", access), number("inherit", (u64)inherit), number("pid", pid);
  u32 code = scripted("OpenProcess", INVALID_PARAMETER), is_living = pid && pid == world->suspended_pid;
  for (u32 i = 0; i < living_count; i++) is_living |= living[i] == pid;
  if (is_living) code = SUCCESS;
  last_error = code;
  if (!code) open_handles++;
  end(code);
  return code ? NULL : (void *)(uintptr_t)OTHER;
}

void *GetCurrentProcess(void) { return (void *)~(uintptr_t)0; }

int CloseHandle(void *handle) {
  begin("CloseHandle");
  number("handle", (u64)(uintptr_t)handle);
  open_handles--;
  end(0);
  return 1;
}

int SetConsoleCtrlHandler(void *handler, int add) {
  begin("SetConsoleCtrlHandler");
  number("add", (u64)add);
  console_handler = add ? (int (*)(u32))(uintptr_t)handler : NULL;
  end(0);
  return 1;
}

/* ---- rights ---- */

int OpenProcessToken(void *process, u32 access, u64 *token) {
  begin("OpenProcessToken");
  number("process", (u64)(uintptr_t)process), number("access", access);
  u32 code = scripted("OpenProcessToken", SUCCESS);
  if (!code) *token = TOKEN, open_handles++;
  end(code);
  return (int)failed("OpenProcessToken", code);
}

int LookupPrivilegeValueW(const u16 *system, const u16 *name, u8 *luid) {
  begin("LookupPrivilegeValueW");
  text("system", system), text("name", name);
  put32(luid, (u32)length(name)), put32(luid + 4, 0);
  u32 code = scripted("LookupPrivilegeValueW", SUCCESS);
  end(code);
  return (int)failed("LookupPrivilegeValueW", code);
}

int AdjustTokenPrivileges(void *token, int disable_all, const u8 *wanted, u32 size, void *before, u32 *needed) {
  begin("AdjustTokenPrivileges");
  (void)before, (void)needed;
  number("token", (u64)(uintptr_t)token), number("disable_all", (u64)disable_all), hex("wanted", wanted, 16), number("size", size);
  last_error = scripted("AdjustTokenPrivileges", SUCCESS); /* succeeds also where it assigned nothing */
  end(last_error);
  return 1;
}

int GetTokenInformation(void *token, u32 kind, u32 *value, u32 size, u32 *needed) {
  begin("GetTokenInformation");
  number("token", (u64)(uintptr_t)token), number("kind", kind), number("size", size);
  *value = is_elevated, *needed = 4;
  u32 code = scripted("GetTokenInformation", SUCCESS);
  end(code);
  return (int)failed("GetTokenInformation", code);
}
