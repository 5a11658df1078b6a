#include "readers/perfetto/sequence.h"

#include "base/perfetto_fields.h"
#include "base/proto_scan.h"

namespace stageline::pftrace {
namespace {

using rows::ArgKey;

constexpr std::pair<std::string_view, OwnKey> kOwnKeys[] = {
#include "readers/perfetto/own_keys.def"
};
// Names of other writers for what Kineto has a name for: torch's device events, rocprofv3.
constexpr std::pair<std::string_view, ArgKey> kOtherNames[] = {{"stream id", ArgKey::kStream},
                                                               {"stream_id", ArgKey::kStream},
                                                               {"corr_id", ArgKey::kCorrelation},
                                                               {"copy_bytes", ArgKey::kBytes},
                                                               {"registers_per_thread", ArgKey::kRegisters},
                                                               {"shared_mem_dynamic", ArgKey::kSharedMemory}};

constexpr size_t kMaxSnapshots = size_t{1} << 20;
constexpr size_t kMaxClocksOnTheWay = 32;

}  // namespace

AnnotationName annotation_name(std::string_view name) {
  AnnotationName out{.key = rows::arg_key(name)};
  for (const auto& [text, key] : kOtherNames)
    if (name == text) out.key = key;
  for (const auto& [text, own] : kOwnKeys)
    if (name == text) out.own = own;
  return out;
}

std::vector<CounterSpec> counter_specs(std::string_view descriptor, bool looks_back) {
  using namespace perfetto;
  std::vector<CounterSpec> specs;
  for (ProtoScan spec(descriptor); spec.next();) {
    if (spec.id != gpu_counter::kSpec || !spec.is_bytes()) continue;
    CounterSpec& one = specs.emplace_back();
    one.looks_back = looks_back;
    for (ProtoScan field(spec.bytes); field.next();) {
      if (field.id == gpu_counter::kCounterId) one.id = field.value;
      if (field.id == gpu_counter::kSpecName && field.is_bytes()) one.name = valid_utf8(field.bytes);
      if (field.id == gpu_counter::kSpecDirection)
        one.looks_back = field.value == 1 || (looks_back && field.value == 0);
    }
  }
  return specs;
}

void ClockBook::add_snapshot(std::vector<Stamp> stamps) {
  if (snapshots_.size() >= kMaxSnapshots || stamps.size() < 2) return;
  const auto number = static_cast<uint32_t>(snapshots_.size());
  for (const Stamp& stamp : stamps) points_[stamp.clock].insert_or_assign(stamp.ns, number);
  snapshots_.push_back(std::move(stamps));
}

std::optional<int64_t> ClockBook::find_way(uint64_t from, int64_t ns, uint64_t to, Leg& leg) const {
  if (from == to) return ns;
  int64_t out = 0;
  // The search is breadth first: it finds the fewest snapshots between the two clocks.
  std::vector<Stamp> reached{{from, ns}};
  for (size_t k = 0; k < reached.size() && reached.size() < kMaxClocksOnTheWay; ++k) {
    const Stamp at = reached[k];
    const auto points = points_.find(at.clock);
    if (points == points_.end()) continue;
    auto next = points->second.upper_bound(at.ns);
    const auto point = next == points->second.begin() ? next : std::prev(next);
    if (point == next) ++next;
    for (const Stamp& other : snapshots_[point->second]) {
      int64_t delta = 0;
      if (__builtin_sub_overflow(other.ns, point->first, &delta) || __builtin_add_overflow(at.ns, delta, &out))
        continue;
      if (other.clock == to) {
        if (k == 0)
          leg = {from,
                 to,
                 point == points->second.begin() ? INT64_MIN : point->first,
                 next == points->second.end() ? INT64_MAX : next->first,
                 delta,
                 snapshots_.size()};
        return out;
      }
      if (std::ranges::none_of(reached, [&](const Stamp& s) { return s.clock == other.clock; }))
        reached.push_back({other.clock, out});
    }
  }
  return std::nullopt;
}

std::optional<int64_t> ClockBook::offset(uint64_t from, uint64_t to) const {
  for (const std::vector<Stamp>& snapshot : snapshots_) {
    const auto at = [&](uint64_t clock) {
      return std::ranges::find_if(snapshot, [&](const Stamp& s) { return s.clock == clock; });
    };
    const auto a = at(from), b = at(to);
    int64_t delta = 0;
    if (a != snapshot.end() && b != snapshot.end() && !__builtin_sub_overflow(b->ns, a->ns, &delta)) return delta;
  }
  return std::nullopt;
}

}  // namespace stageline::pftrace
