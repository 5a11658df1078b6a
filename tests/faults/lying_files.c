// A file system that lies, for one run of a program: preloaded, it stands between the program and libc's calls on files
// below one folder, and does wrong what STAGELINE_FAULT_PLAN says. Everything else passes through.
//
//   STAGELINE_FAULT_ROOT   folder whose files are lied about
//   STAGELINE_FAULT_PLAN   "call:at:effect[,…]": at the `at`-th call (from 0) of this kind on these files, and
//                          from then on where the effect lasts
//   STAGELINE_FAULT_LOG    where each lie that was told is written: "call:at:effect path"
//
//   read    short   one byte is given instead of many            write   short   one byte is taken
//           again   EINTR                                                again   EINTR
//           eio     EIO, and so from then on for this file               eio     EIO, lasts
//           end     the file ends here, lasts for this file              full    ENOSPC, lasts
//           flip    a bit of what is given is another             sync    eio, full
//   open    gone    ENOENT     barred  EACCES    many  EMFILE     rename  eio, full
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kRead, kWrite, kSync, kOpen, kRename, kCalls };
static const char* const kNames[kCalls] = {"read", "write", "sync", "open", "rename"};
enum { kMaxLies = 8, kMaxFiles = 4096 };

struct Lie {
  int call;
  long at;
  char effect[16];
  int reported;
};
static struct Lie lies[kMaxLies];
static int lie_count;
static long calls[kCalls];
static char root[1024];
static size_t root_size;
static int log_fd = -1;
static unsigned char ours[kMaxFiles], broken[kMaxFiles], ended[kMaxFiles];  // by descriptor
static int writes_full, writes_broken;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static ssize_t (*real_write)(int, const void*, size_t);

__attribute__((constructor)) static void begin(void) {
  real_write = REAL(write);
  const char* folder = getenv("STAGELINE_FAULT_ROOT");
  const char* plan = getenv("STAGELINE_FAULT_PLAN");
  const char* log = getenv("STAGELINE_FAULT_LOG");
  if (!folder || !plan) return;
  snprintf(root, sizeof root, "%s/", folder);
  if (log) log_fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  char copy[1024], *rest = copy, *one;
  snprintf(copy, sizeof copy, "%s", plan);
  while ((one = strsep(&rest, ",")) && lie_count < kMaxLies) {
    struct Lie* lie = &lies[lie_count];
    char name[16];
    if (sscanf(one, "%15[a-z]:%ld:%15[a-z]", name, &lie->at, lie->effect) != 3) continue;
    for (int c = 0; c < kCalls; ++c)
      if (strcmp(name, kNames[c]) == 0) lie->call = c, ++lie_count, c = kCalls;
  }
  root_size = strlen(root);
}

static void say(int call, long at, const char* effect, const char* path) {
  char line[1400];
  const int n = snprintf(line, sizeof line, "%s:%ld:%s %s\n", kNames[call], at, effect, path);
  if (log_fd >= 0 && n > 0) (void)!real_write(log_fd, line, (size_t)n);
}

static const char* path_of(int fd, char* room, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, room, size - 1);
  room[n > 0 ? n : 0] = 0;
  return room;
}

// The effect that is due at this call, or "".
static const char* due(int call, const char* path) {
  static __thread char effect[16];
  effect[0] = 0;
  pthread_mutex_lock(&mutex);
  const long number = calls[call]++;
  for (int i = 0; i < lie_count; ++i)
    if (lies[i].call == call && lies[i].at == number) strcpy(effect, lies[i].effect), lies[i].reported = 1;
  pthread_mutex_unlock(&mutex);
  if (effect[0]) say(call, number, effect, path);
  return effect;
}

static int is_ours(int fd) { return root_size && fd >= 0 && fd < kMaxFiles && ours[fd]; }

static int fail(int reason) {
  errno = reason;
  return -1;
}

static int after_open(int fd, const char* path) {
  (void)path;
  if (fd < 0 || fd >= kMaxFiles || !root_size) return fd;
  char room[1200];
  struct stat st;
  ours[fd] = broken[fd] = ended[fd] = 0;
  if (strncmp(path_of(fd, room, sizeof room), root, root_size) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) ours[fd] = 1;
  return fd;
}

static int refuses_open(const char* path) {
  if (!root_size || !path || strncmp(path, root, root_size) != 0) return 0;
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return 0;
  const char* effect = due(kOpen, path);
  if (strcmp(effect, "gone") == 0) return errno = ENOENT;
  if (strcmp(effect, "barred") == 0) return errno = EACCES;
  if (strcmp(effect, "many") == 0) return errno = EMFILE;
  return 0;
}

#define OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                      \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                   \
    if (refuses_open(path)) return -1;                              \
    return after_open(REAL(name)(path, flags, mode), path);         \
  }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                                \
  int name(int at, const char* path, int flags, ...) {              \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                   \
    if (refuses_open(path)) return -1;                              \
    return after_open(REAL(name)(at, path, flags, mode), path);     \
  }
OPENAT(openat)
OPENAT(openat64)

// How much may be read: −1 with errno, 0 at an early end, else at most `size`. `flip`: what comes is altered.
static ssize_t may_read(int fd, size_t size, int* flip) {
  char room[1200];
  *flip = 0;
  if (broken[fd]) return fail(EIO);
  if (ended[fd]) return 0;
  const char* effect = due(kRead, path_of(fd, room, sizeof room));
  if (strcmp(effect, "short") == 0) return size > 1 ? 1 : (ssize_t)size;
  if (strcmp(effect, "again") == 0) return fail(EINTR);
  if (strcmp(effect, "eio") == 0) return broken[fd] = 1, fail(EIO);
  if (strcmp(effect, "end") == 0) return ended[fd] = 1, 0;
  *flip = strcmp(effect, "flip") == 0;
  return (ssize_t)size;
}
static ssize_t altered(void* data, ssize_t n, int flip) {
  if (flip && n > 0) ((unsigned char*)data)[n / 2] ^= 4;
  return n;
}

ssize_t read(int fd, void* data, size_t size) {
  int flip = 0;
  const ssize_t may = is_ours(fd) ? may_read(fd, size, &flip) : (ssize_t)size;
  return may <= 0 && size > 0 ? may : altered(data, REAL(read)(fd, data, (size_t)may), flip);
}
#define PREAD(name)                                                                             \
  ssize_t name(int fd, void* data, size_t size, off_t at) {                                     \
    int flip = 0;                                                                               \
    const ssize_t may = is_ours(fd) ? may_read(fd, size, &flip) : (ssize_t)size;                \
    return may <= 0 && size > 0 ? may : altered(data, REAL(name)(fd, data, (size_t)may, at), flip); \
  }
PREAD(pread)
PREAD(pread64)

static ssize_t may_write(int fd, size_t size) {
  char room[1200];
  if (writes_full) return fail(ENOSPC);
  if (writes_broken) return fail(EIO);
  const char* effect = due(kWrite, path_of(fd, room, sizeof room));
  if (strcmp(effect, "short") == 0) return size > 1 ? 1 : (ssize_t)size;
  if (strcmp(effect, "again") == 0) return fail(EINTR);
  if (strcmp(effect, "eio") == 0) return writes_broken = 1, fail(EIO);
  if (strcmp(effect, "full") == 0) return writes_full = 1, fail(ENOSPC);
  return (ssize_t)size;
}
ssize_t write(int fd, const void* data, size_t size) {
  const ssize_t may = is_ours(fd) ? may_write(fd, size) : (ssize_t)size;
  return may < 0 ? -1 : real_write(fd, data, (size_t)may);
}
#define PWRITE(name)                                                                 \
  ssize_t name(int fd, const void* data, size_t size, off_t at) {                    \
    const ssize_t may = is_ours(fd) ? may_write(fd, size) : (ssize_t)size;           \
    return may < 0 ? -1 : REAL(name)(fd, data, (size_t)may, at);                     \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

static int may_sync(int fd) {
  char room[1200];
  const char* effect = due(kSync, path_of(fd, room, sizeof room));
  if (strcmp(effect, "eio") == 0) return fail(EIO);
  if (strcmp(effect, "full") == 0) return fail(ENOSPC);
  return 0;
}
int fsync(int fd) { return is_ours(fd) && may_sync(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_ours(fd) && may_sync(fd) ? -1 : REAL(fdatasync)(fd); }

int rename(const char* from, const char* to) {
  if (root_size && strncmp(to, root, root_size) == 0) {
    const char* effect = due(kRename, to);
    if (strcmp(effect, "eio") == 0) return fail(EIO);
    if (strcmp(effect, "full") == 0) return fail(ENOSPC);
  }
  return REAL(rename)(from, to);
}
int close(int fd) {
  if (fd >= 0 && fd < kMaxFiles) ours[fd] = 0;
  return REAL(close)(fd);
}
