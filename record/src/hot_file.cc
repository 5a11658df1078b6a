// The hot file: rings in memory that the page cache keeps when the process is killed.
//
// Its whole size is mapped at once, sparse. A ring's blocks are allocated when its thread appears, so that a full disk
// is an error here and not a SIGBUS in the middle of a training step.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <initializer_list>

#include "recorder.h"

namespace slr {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t round_up(uint64_t n) { return (n + kPage - 1) / kPage * kPage; }

// Mapped files on file systems of the network stall whoever touches a page, and may be lost with the client.
bool is_local(const char* folder) {
  struct statfs facts;
  if (statfs(folder, &facts) != 0) return false;
  switch (static_cast<unsigned long>(facts.f_type)) {
    case 0x6969:      // NFS
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x65735546:  // FUSE: JuiceFS, sshfs, object stores
    case 0x00C36400:  // Ceph
    case 0x19830326:  // BeeGFS
    case 0x01021997:  // 9P
    case 0x517B: return false;
    default: return true;
  }
}

int create_hot(const char* path, uint64_t bytes, uint64_t header_bytes) {
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0 && posix_fallocate(fd, 0, static_cast<off_t>(header_bytes)) == 0)
    return fd;
  ::close(fd);
  unlink(path);
  return -1;
}

}  // namespace

RingHeader* ring_at(uint32_t index) {
  return reinterpret_cast<RingHeader*>(reinterpret_cast<char*>(state.hot) + state.rings_at + index * state.ring_bytes);
}

bool open_hot_file(const Settings& settings, const char* stem, const FileHeader& identity) {
  const uint32_t records = (settings.ring_kb << 10) / sizeof(Record);
  const uint64_t ring_bytes = round_up(kRingHeaderBytes + uint64_t{records} * sizeof(Record));
  uint64_t limit = (uint64_t{settings.memory_mb} << 20) / ring_bytes;
  limit = limit < 1 ? 1 : limit > kMaxRings ? kMaxRings : limit;
  const uint64_t lanes_at = kPage, names_at = lanes_at + kMaxLanes * sizeof(LaneEntry);
  const uint64_t rings_at = names_at + kNameBytes;
  const uint64_t bytes = rings_at + limit * ring_bytes;

  int fd = -1;
  state.hot_path[0] = '\0';
  const char* wish = getenv("STAGELINE_HOT_DIR");
  const char* name = strrchr(stem, '/') ? strrchr(stem, '/') + 1 : stem;
  if (wish && *wish) snprintf(state.hot_path, sizeof state.hot_path, "%s/%s.slhot", wish, name);
  else if (is_local(settings.dir)) snprintf(state.hot_path, sizeof state.hot_path, "%s.slhot", stem);
  else snprintf(state.hot_path, sizeof state.hot_path, "/dev/shm/%s.slhot", name);
  {
    const LimitQuiet quiet;
    fd = create_hot(state.hot_path, bytes, rings_at);
  }
  void* base = MAP_FAILED;
  if (fd >= 0) base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0 && base == MAP_FAILED) {
    ::close(fd);
    unlink(state.hot_path);
    fd = -1;
  }
  if (base == MAP_FAILED) {  // records live, but only until the process dies
    state.hot_path[0] = '\0';
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
  }
  auto* hot = static_cast<HotHeader*>(base);
  hot->version = kFormatVersion;
  hot->header_bytes = kPage;
  hot->ring_records = records;
  hot->ring_limit = static_cast<uint32_t>(limit);
  hot->lanes_at = lanes_at;
  hot->names_at = names_at;
  hot->rings_at = rings_at;
  hot->ring_bytes = ring_bytes;
  hot->pid = identity.pid;
  hot->rank = identity.rank;
  hot->ticks_per_second = state.ticks_per_second = identity.ticks_per_second;
  hot->start_realtime_ns = identity.start_realtime_ns;
  memcpy(hot->uuid, identity.uuid, sizeof hot->uuid);
  hot->clock = identity.clock;
  state.hot_file.take(fd);
  state.hot_bytes = bytes;
  state.lanes_at = lanes_at;
  state.names_at = names_at;
  state.rings_at = rings_at;
  state.ring_bytes = ring_bytes;
  state.ring_limit = static_cast<uint32_t>(limit);
  state.ring_count.store(0);
  state.ring_records = records;
  for (auto& word : state.free_rings) word.store(0, std::memory_order_relaxed);
  if (const Held held(names); true) state.hot = hot;
  memcpy(hot->magic, kHotMagic, sizeof hot->magic);  // last: from here on it is a recording
  return true;
}

void close_hot_file(bool remove) {
  if (remove && state.hot_path[0]) unlink(state.hot_path);
  state.hot_file.close();
  leave_hot_file();
}

void leave_hot_file() {
  static char header[kPage];
  memcpy(header, static_cast<void*>(state.hot), sizeof header);
  if (mmap(state.hot, state.hot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
           -1, 0) != MAP_FAILED)
    memcpy(static_cast<void*>(state.hot), header, sizeof header);
}

void give_up_recording() {
  if (state.given_up.exchange(1) != 0) return;
  control.load()->on.store(0);
  char text[2048];
  size_t size = 0;
  for (const char* part :
       {"stageline: ", state.cold.path(),
        ": another program changed the files of this recording, so it has ended; the program goes on\n"})
    for (; *part && size < sizeof text; ++part) text[size++] = *part;
  if (::write(2, text, size) < 0) return;
}

namespace {

struct sigaction other_bus_action;

// An access to a page that the file does not have any more gets memory instead, empty as a new ring.
void on_bus_error(int signal, siginfo_t* facts, void* context) {
  const int saved_errno = errno;
  const auto at = reinterpret_cast<uintptr_t>(facts->si_addr), begin = reinterpret_cast<uintptr_t>(state.hot);
  if (facts->si_code > 0 && begin != 0 && at >= begin && at - begin < state.hot_bytes &&
      mmap(state.hot, state.hot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
           -1, 0) != MAP_FAILED) {
    give_up_recording();
    errno = saved_errno;
    return;
  }
  if (other_bus_action.sa_flags & SA_SIGINFO) return other_bus_action.sa_sigaction(signal, facts, context);
  if (other_bus_action.sa_handler != SIG_DFL && other_bus_action.sa_handler != SIG_IGN)
    return other_bus_action.sa_handler(signal);
  if (other_bus_action.sa_handler == SIG_IGN && facts->si_code <= 0) return;
  ::signal(signal, SIG_DFL);
  if (facts->si_code <= 0) raise(signal);  // it was sent, so no instruction meets it again
}

}  // namespace

void survive_cut_files() {
  struct sigaction now{};
  if (sigaction(SIGBUS, nullptr, &now) != 0 || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error))
    return;
  struct sigaction own{};
  own.sa_sigaction = on_bus_error;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&own.sa_mask);
  other_bus_action = now;
  sigaction(SIGBUS, &own, nullptr);
}

namespace {

pthread_key_t exit_key;

// The index of a ring that no thread has, or −1.
int32_t take_ring() {
  for (uint32_t w = 0; w < kMaxRings / 64; ++w) {
    uint64_t free = state.free_rings[w].load(std::memory_order_acquire);
    while (free != 0) {
      const auto bit = static_cast<uint32_t>(__builtin_ctzll(free));
      if (state.free_rings[w].compare_exchange_weak(free, free & ~(uint64_t{1} << bit), std::memory_order_acq_rel))
        return static_cast<int32_t>(w * 64 + bit);
    }
  }
  uint32_t count = state.ring_count.load(std::memory_order_relaxed);
  const LimitQuiet quiet;
  for (;;) {
    if (count >= state.ring_limit) return -1;
    // The blocks come before the number: whoever counts this ring can touch it.
    const auto at = static_cast<off_t>(state.rings_at + count * state.ring_bytes);
    if (state.hot_file.is_open() &&
        (!state.hot_file.keep(state.hot_path, O_RDWR) ||
         posix_fallocate(state.hot_file.get(), at, static_cast<off_t>(state.ring_bytes)) != 0))
      return -1;
    if (!state.ring_count.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) continue;
    uint32_t seen = count;  // for `stageline recover`; two threads may be here at once
    while (seen < count + 1 && !state.hot->ring_count.compare_exchange_weak(seen, count + 1)) {
    }
    return static_cast<int32_t>(count);
  }
}

}  // namespace

bool make_exit_key() { return pthread_key_create(&exit_key, release_thread) == 0; }

Thread* acquire_thread() {
  const SignalsOff off;  // a handler that records would take a second ring
  const int saved_errno = errno;
  const int32_t index = take_ring();
  if (index < 0) {
    errno = saved_errno;
    drop(SLR_DROP_NO_RING);
    return nullptr;
  }
  Thread* thread = &state.threads[index];
  if (thread == state.interrupted) thread = &state.threads[kMaxRings];
  RingHeader* ring = ring_at(static_cast<uint32_t>(index));
  thread->ring = ring;
  thread->records = records_of(ring);
  thread->index = static_cast<uint32_t>(index);
  thread->head = ring->head.load(std::memory_order_acquire);
  thread->known_tail = ring->tail.load(std::memory_order_acquire);
  thread->depth = 0;
  thread->next_slot = 0;
  ++thread->generation;
  thread->busy = 0;
  ring->depth.store(0, std::memory_order_release);

  LaneEntry entry{};
  entry.device = -1;
  entry.thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  snprintf(entry.name, sizeof entry.name, "%s %u", name[0] ? name : "thread", entry.thread_id);
  thread->lane = add_lane(entry, nullptr);
  ring->lane = thread->lane;
#ifdef MADV_POPULATE_WRITE
  // Faults now, not one in every 128 records.
  madvise(reinterpret_cast<char*>(ring), state.ring_bytes, MADV_POPULATE_WRITE);
#endif
  this_thread = thread;
  this_recording = state.recording;
  pthread_setspecific(exit_key, thread);
  errno = saved_errno;
  return thread;
}

void release_thread(void* pointer) {
  auto* thread = static_cast<Thread*>(pointer);
  // A place of an earlier recording is another thread's by now.
  const bool own = this_thread == thread && this_recording == state.recording;
  this_thread = nullptr;
  if (!own || !is_on()) return;
  record_open_ranges(thread);
  state.free_rings[thread->index / 64].fetch_or(uint64_t{1} << thread->index % 64, std::memory_order_acq_rel);
}

}  // namespace slr
