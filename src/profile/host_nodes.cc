#include "profile/host_nodes.h"

#include "base/name_pattern.h"
#include "model/message_names.h"
#include "model/torch_facts.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

// Returns what a slice's name says about everything inside it.
IdleCause context_of_name(Category category, std::string_view name) {
  if (mentions(name, "DataLoader") || mentions(name, "torch/utils/data/")) return IdleCause::kInput;
  if (category == Category::kOverhead && name == "garbage collection") return IdleCause::kCollector;  // GC_RECORD
  if (category == Category::kPythonFunction &&
      (name == "<built-in function collect>" || name.starts_with("<built-in method collect of module") ||
       mentions(name, "gc.collect") || (mentions(name, "Garbage") && mentions(name, "ollect"))))
    return IdleCause::kCollector;
  if (is_launch_call(category) && is_allocator_call(name)) return IdleCause::kAllocator;
  if (is_host_message(name)) return IdleCause::kHostCollective;
  if (mentions(name, "distributed_c10d.py"))
    for (const char* part : {"_object", "barrier", "store"})
      if (mentions(name, part)) return IdleCause::kHostCollective;
  return IdleCause::kUnseen;
}

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (const bool digit = c >= '0' && c <= '9'; !digit || !out.ends_with('#')) out += digit ? '#' : c;
  return out;
}

bool HostNodes::is_around_run(uint32_t slice) const {
  return category(slice) == Category::kUserAnnotation && profiler_step_number(name(slice)) < 0 &&
         s_.start_ns[slice] <= run_.start && s_.end_ns(slice) >= run_.end;
}

bool HostNodes::is_around_step(uint32_t slice) const {
  if (category(slice) != Category::kUserAnnotation || profiler_step_number(name(slice)) >= 0) return false;
  const auto step = std::ranges::lower_bound(part_.steps, s_.start_ns[slice], {}, &ProfilerStep::start_ns);
  return step != part_.steps.end() && step->end_ns <= s_.end_ns(slice);
}

IdleCause HostNodes::context_of(size_t i) const {
  const IdleCause own = context_of_name(category(i), name(i));
  const bool talks = own == IdleCause::kUnseen && category(i) == Category::kCpuOp && !device_communicates_;
  return talks && is_communication_call(name(i)) ? IdleCause::kHostCollective : own;
}

uint32_t HostNodes::of(uint32_t slice) {
  if (slice == kNoSliceIndex) return kHostRoot;
  if (node_of_slice_.empty()) node_of_slice_.assign(s_.size(), kUnset);
  path_.clear();
  uint32_t at = slice;
  while (at != kNoSliceIndex && node_of_slice_[at] == kUnset) {
    path_.push_back(at);
    const uint32_t up = s_.parent[at];
    at = up < at ? up : kNoSliceIndex;  // an enclosing slice comes before what it encloses
  }
  uint32_t node = at == kNoSliceIndex ? kHostRoot : node_of_slice_[at];
  for (size_t k = path_.size(); k-- > 0;) {
    const uint32_t i = path_[k];
    if (is_around_run(i) || is_around_step(i)) {
      node_of_slice_[i] = node;
      continue;
    }
    const StringId id = plain_name(i);
    const auto [it, added] =
        child_of_.try_emplace(static_cast<uint64_t>(node) << 32 | id, static_cast<uint32_t>(nodes_.size()));
    if (added) {
      HostNode made{node, s_.name_id[i], category(i), i, nodes_[node].context};
      made.counted = counters_.contains(s_.name_id[i]);
      // The outer slice says what the time is for: memory that is allocated for the input counts as input.
      if (made.context == IdleCause::kUnseen) made.context = context_of(i);
      nodes_.push_back(made);
    }
    node = it->second;
    HostNode& known = nodes_[node];
    if (s_.dur_ns[i] > s_.dur_ns[known.slice]) known.slice = i;
    node_of_slice_[i] = node;
  }
  return node;
}

void HostNodes::find_counters() {
  std::unordered_map<StringId, size_t> slices;
  for (size_t i = 0; i < s_.size(); ++i)
    if (category(i) == Category::kUserAnnotation && profiler_step_number(name(i)) < 0) ++slices[s_.name_id[i]];
  std::unordered_map<std::string, std::vector<StringId>> alike;
  for (const auto& [id, count] : slices) alike[without_numbers(trace_.names.text(id))].push_back(id);
  constexpr size_t kSeveral = 3;
  for (const auto& [text, ids] : alike)
    if (ids.size() >= kSeveral && std::ranges::all_of(ids, [&](StringId id) { return slices[id] == 1; }))
      counters_.insert(ids.begin(), ids.end());
}

StringId HostNodes::plain_name(uint32_t slice) {
  const StringId id = s_.name_id[slice];
  if (plain_.empty()) {
    plain_.assign(trace_.names.size(), UINT32_MAX);
    find_counters();
  }
  if (plain_[id] != UINT32_MAX) return plain_[id];
  std::string text(trace_.names.text(id));
  if (profiler_step_number(text) >= 0) text = "ProfilerStep";
  text = counters_.contains(id) ? without_numbers(text) : without_address(text);
  return plain_[id] = plain_names_.try_emplace(text, id).first->second;
}

bool is_copy_call(std::string_view name) { return mentions(name, "Memcpy") || mentions(name, "memcpy"); }

bool is_allocator_call(std::string_view name) {
  static const AnyOf parts({"alloc", "Alloc", "HostRegister", "HostUnregister", "cuMemCreate", "cuMemMap", "cuMemUnmap",
                            "cuMemRelease", "cuMemSetAccess", "cuMemAddress", "aclrtFree"});
  return name.starts_with("cudaFree") || name.starts_with("hipFree") || name.starts_with("cuMemFree") || parts.in(name);
}

bool is_host_message(std::string_view name) {
  const bool mpi = name.starts_with("MPI_") && !name.starts_with("MPI_Init") && !name.starts_with("MPI_Finalize");
  return mpi || name.starts_with("gloo:") || name.starts_with("mpi:");
}

bool is_waiting_call(std::string_view name) {
  if (mentions(name, "Synchronize")) return true;
  if (name == "cudaFree" || name == "hipFree" || name == "cudaFreeHost" || name == "hipHostFree") return true;
  return is_copy_call(name);  // also *Async copies: from pageable memory they block
}

}  // namespace stageline
