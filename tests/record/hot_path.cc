// The calls of a training step neither allocate nor lock nor make system calls, once their lane was used. This holds on
// a thread's lane, on a lane of the program, and on a stream of a device that does not exist.
//
// Memory and locks are watched by replacing libc's functions in this program, which the recorder's library then calls
// too. The kernel is watched by a seccomp filter on the one thread, under which every system call is a signal. Each
// watch is first shown something that it must detect. It is not for sanitizers, which have their own malloc.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "fake_gpu.h"
#include "stageline_record.h"

namespace {

struct Seen {
  long allocations, locks, calls;
  long first_call;  // number of the first system call
  long events;      // that the device was asked to record meanwhile
};
Seen* seen;  // shared with the parent
thread_local bool watching = false;
const char *fake_begin, *fake_end;  // the fake driver, whose own lock is not ours

bool of_fake(const void* caller) { return caller >= fake_begin && caller < fake_end; }
void allocates(const void* caller) {
  if (watching && !of_fake(caller)) ++seen->allocations;
}
template <class F> F next(F, const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept { return allocates(__builtin_return_address(0)), __libc_malloc(size); }
void* calloc(size_t n, size_t size) noexcept { return allocates(__builtin_return_address(0)), __libc_calloc(n, size); }
void* realloc(void* at, size_t size) noexcept {
  return allocates(__builtin_return_address(0)), __libc_realloc(at, size);
}
void free(void* at) noexcept {
  if (at) allocates(__builtin_return_address(0));
  __libc_free(at);
}
void* aligned_alloc(size_t to, size_t size) noexcept {
  return allocates(__builtin_return_address(0)), __libc_memalign(to, size);
}

// The fake driver's lock is taken without asking the kernel, by whoever takes it.
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = next(&pthread_mutex_lock, "pthread_mutex_lock");
  static const auto try_lock = next(&pthread_mutex_trylock, "pthread_mutex_trylock");
  if (of_fake(__builtin_return_address(0))) {
    while (try_lock(mutex) != 0) {
    }
    return 0;
  }
  if (watching) ++seen->locks;
  return lock(mutex);
}
// The recorder's own locks keep signals off.
int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static const auto real = next(&pthread_sigmask, "pthread_sigmask");
  if (watching) ++seen->locks;
  return real(how, set, before);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = next(&pthread_rwlock_rdlock, "pthread_rwlock_rdlock");
  if (watching) ++seen->locks;
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static const auto real = next(&pthread_rwlock_wrlock, "pthread_rwlock_wrlock");
  if (watching) ++seen->locks;
  return real(lock);
}
}

namespace {

void on_system_call(int, siginfo_t* info, void* context) {
  if (seen->calls++ == 0) seen->first_call = info->si_syscall;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

// From here on this thread can only read clocks and leave.
bool forbid_system_calls() {
  struct sigaction action{};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A sandbox may refuse filters: memory and locks are watched there all the same.
bool can_forbid() {
  const pid_t child = fork();
  if (child == 0) _exit(forbid_system_calls() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
bool calls_watched = true;

struct Lanes {
  slr_lane of_thread = 0, own, stream, other_stream;
  slr_str name, counter;
  int64_t step = 0;
};

void every_call(Lanes& l, int times) {
  for (int i = 0; i < times; ++i) {
    for (const slr_lane lane : {l.of_thread, l.own, l.stream, l.other_stream}) {
      slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
      const slr_range first = slr_begin(lane, &job);
      job.kind = SLR_SEND_FORWARD;
      job.peer = 1;
      job.bytes = 1 << 20;
      job.sequence = i;
      const slr_range second = slr_switch(lane, first, &job);
      slr_push(lane, l.name);
      slr_push_job(lane, &job);
      slr_pop(lane);
      slr_pop(lane);
      slr_end(second);
      slr_end(second);  // a handle that is no more
      slr_mark(lane, l.name);
    }
    slr_pop(0);                                                    // nothing is open
    for (int depth = 0; depth < 70; ++depth) slr_push(0, l.name);  // deeper than is kept
    for (int depth = 0; depth < 70; ++depth) slr_pop(0);
    slr_counter(l.counter, i);
    slr_step(++l.step);
  }
}

int find_fake_end(dl_phdr_info* library, size_t, void*) {
  const char* const base = reinterpret_cast<const char*>(library->dlpi_addr);
  if (base != fake_begin) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i)
    if (const auto& segment = library->dlpi_phdr[i]; segment.p_type == PT_LOAD)
      fake_end = std::max(fake_end, base + segment.p_vaddr + segment.p_memsz);
  return 1;
}

// Runs `body` under all watches, in a process of its own; what they saw. Negative calls: it could not be watched.
Seen watch(const std::function<void(Lanes&)>& body) {
  *seen = {};
  char folder[] = "/tmp/stageline_hot_path_XXXXXX";
  if (!mkdtemp(folder)) return {0, 0, -1, 0, 0};
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    void* library = dlopen(STAGELINE_FAKE_FOLDER "/libcuda.so.1", RTLD_NOW);
    Dl_info info;
    if (!library || !dladdr(dlsym(library, "fake_gpu"), &info)) _exit(3);
    fake_begin = static_cast<const char*>(info.dli_fbase);
    dl_iterate_phdr(find_fake_end, nullptr);  // not a guess: another library may begin right behind it
    if (!fake_end) _exit(3);
    const auto make_stream = reinterpret_cast<FakeStreamFunction>(dlsym(library, "fake_stream"));
    slr_config config = SLR_CONFIG_INIT;
    config.dir = folder;
    config.rank = 0;
    config.max_overhead = -1;
    if (slr_init(&config) != 0) _exit(4);
    Lanes lanes;
    lanes.own = slr_lane_host("queue");
    lanes.stream = slr_lane_stream(SLR_CUDA, make_stream(), "compute");
    lanes.other_stream = slr_lane_stream(SLR_CUDA, make_stream(), "p2p");
    lanes.name = slr_intern("forward", 7);
    lanes.counter = slr_intern("loss", 4);
    every_call(lanes, 20);  // first uses
    slr_flush(5000);
    if (calls_watched && !forbid_system_calls()) _exit(5);
    FakeGpu* gpu = reinterpret_cast<FakeGpuFunction>(dlsym(library, "fake_gpu"))();
    seen->events -= gpu->records;
    watching = true;
    body(lanes);
    watching = false;
    seen->events += gpu->records;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::string remove = std::string("rm -rf ") + folder;
  if (system(remove.c_str()) != 0) return {0, 0, -1, 0, 0};
  if (status != 0) {
    fprintf(stderr, "hot_path: the watched process ended with status %d\n", status);
    return {0, 0, -1, 0, 0};
  }
  return *seen;
}

int failures = 0;
void expect(bool holds, const char* what, const Seen& s) {
  printf("%s  %-60s memory %ld, locks %ld, system calls %ld", holds ? "ok    " : "FAILED", what, s.allocations, s.locks,
         s.calls);
  printf(s.calls > 0 ? " (first: %ld)\n" : "\n", s.first_call);
  failures += holds ? 0 : 1;
}

}  // namespace

int main() {
  seen = static_cast<Seen*>(mmap(nullptr, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (seen == MAP_FAILED) return 2;
  calls_watched = can_forbid();
  if (!calls_watched) printf("skipped: system calls cannot be watched: this machine refuses seccomp filters\n");
  Seen s = watch([](Lanes&) {});
  expect(s.allocations + s.locks + s.calls == 0, "nothing is seen where nothing is done", s);
  s = watch([](Lanes&) {
    void* volatile at = malloc(16);
    free(at);
  });
  expect(s.allocations == 2, "memory is seen", s);
  s = watch([](Lanes&) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
  });
  expect(s.locks == 1, "a lock is seen", s);
  s = watch([](Lanes&) {
    const timespec nap = {0, 1};
    nanosleep(&nap, nullptr);
  });
  expect(s.calls >= 1 || !calls_watched, "a system call is seen", s);
  s = watch([](Lanes&) { slr_intern("a name that is new", 18); });
  expect(s.locks >= 1, "a lock that the recorder takes is seen (slr_intern)", s);
  s = watch([](Lanes& lanes) { every_call(lanes, 2000); });
  expect(s.allocations + s.locks + s.calls == 0, "every call, on host and device lanes", s);
  expect(s.events > 500, "the device was asked for events meanwhile", s);
  return failures;
}
