// Finds communication during which nothing is computed, and copies during which nothing else runs.
#include "diagnosis/profile/loss_search.h"

namespace stageline {
namespace {

// The exposed work of one name that is launched from one place of the program.
struct ExposedGroup {
  double exposed_ns = 0, worst_ns = 0;
  size_t worst = 0;
  std::vector<size_t> items;
};
using ExposedGroups = std::map<std::pair<bool, std::string>, ExposedGroup>;  // key: whether they are copies, and name

class ExposedWork {
 public:
  explicit ExposedWork(LossSearch& search)
      : search_(search), part_(search.part), t_(search.timeline), awaited_by_(t_.device.size(), -1) {
    for (size_t j = 0; j < t_.device.size(); ++j)
      if (t_.device[j].other >= 0) awaited_by_[t_.device[j].other] = static_cast<int32_t>(j);
  }

  void find() {
    for (const auto& [key, group] : groups())
      if (group.exposed_ns >= search_.min_loss_ns()) add(key.first, group);
  }

 private:
  std::string label_of(const DeviceTimeline::DeviceItem& item) const {
    if (const CollectiveFact* fact = fact_of(part_.collectives, item.slice); fact && fact->name != 0)
      if (std::string text = search_.name(fact->name); !text.empty()) return text;
    return item.kernel == KernelClass::kMemory ? search_.name(part_.slices.name_id[item.slice])
                                               : search_.kernel_name(item.slice);
  }

  int64_t stream_of(size_t item) const { return part_.streams[part_.slices.stream_id[t_.device[item].slice]]; }

  double computing_on(uint16_t stream) const {
    double sum = 0;
    for (const auto& item : t_.device)
      if (item.kernel == KernelClass::kComputation && part_.slices.stream_id[item.slice] == stream)
        sum += item.end_ns - item.start_ns;
    return sum;
  }

  ExposedGroups groups() const {
    const std::vector<Interval> compute = union_of(search_.work_of(KernelClass::kComputation));
    std::vector<Interval> both = union_of(search_.work_of(KernelClass::kCommunication));
    both.insert(both.end(), compute.begin(), compute.end());
    const CoveredTime under_compute(compute), under_both(union_of(std::move(both)));
    ExposedGroups groups;
    for (size_t j = 0; j < t_.device.size(); ++j) {
      const auto& item = t_.device[j];
      const bool copies = item.kernel == KernelClass::kMemory;
      if (!copies && item.kernel != KernelClass::kCommunication) continue;
      const CoveredTime& cover = copies ? under_both : under_compute;
      const double exposed = item.end_ns - item.start_ns - cover.within(item.start_ns, item.end_ns);
      if (exposed <= 0) continue;
      std::string text = label_of(item);
      if (item.launch >= 0) text += "\n" + std::to_string(t_.host[item.launch].node);
      ExposedGroup& group = groups[{copies, text}];
      group.exposed_ns += exposed;
      group.items.push_back(j);
      if (exposed > group.worst_ns) group.worst_ns = exposed, group.worst = j;
    }
    return groups;
  }

  void add(bool copies, const ExposedGroup& group) {
    const auto& worst = t_.device[group.worst];
    RankLoss x;
    x.kind = copies ? LossKind::kCopy : LossKind::kCollective;
    x.what = label_of(worst);
    x.recorded_ns = group.exposed_ns;
    if (const CollectiveFact* fact = fact_of(part_.collectives, worst.slice)) x.members = fact->group_size;
    if (worst.launch >= 0) x.at = search_.culprits.of(t_.host[worst.launch].node);
    x.stream = stream_of(group.worst);
    x.one_stream = !copies && 2 * computing_on(part_.slices.stream_id[worst.slice]) > t_.compute_ns;
    if (const int32_t next = awaited_by_[group.worst]; next >= 0) x.waiting = stream_of(next);
    TakenOut out = search_.without_device_work();
    for (const size_t j : group.items) out.device_ns[j] = 0;
    search_.add(std::move(x), out);
  }

  LossSearch& search_;
  const Part& part_;
  const DeviceTimeline& t_;
  std::vector<int32_t> awaited_by_;  // for each item: work of another stream that follows it
};

}  // namespace

void find_exposed(LossSearch& search) { ExposedWork(search).find(); }

}  // namespace stageline
