#include "diagnosis/profile/finding_parts.h"

namespace stageline {
namespace {

constexpr double kCompileShare = 0.05;

// Ranges in which a compiler works, by their names in torch (torch/_dynamo/utils.py: dynamo_timed), JAX
// (jax/_src/compiler.py) and XLA's clients (PjRtCpuClient::Compile). Ranges that run compiled code are none
// ("Torch-Compiled Region", "CompiledFxGraph", "PjitFunction").
bool is_compiling(std::string_view name) {
  return name.ends_with(" (dynamo_timed)") || name == "backend_compile" || name == "backend_compile_and_load" ||
         name.ends_with("Client::Compile") || name.ends_with("Client::CompileAndLoad");
}

}  // namespace

void add_compilation(const Trace& trace, const ProfileFacts& facts, std::vector<Finding>& out) {
  std::vector<bool> compiling(trace.names.size());
  for (StringId id = 0; id < trace.names.size(); ++id) compiling[id] = is_compiling(trace.names.text(id));
  if (std::ranges::count(compiling, true) == 0) return;
  double all_ns = 0, compile_ns = 0, in_operators_ns = 0;
  int64_t longest_ns = 0, last_ns = 0;
  std::string_view longest;
  for (const Part& part : trace.parts) {
    Span recording;
    std::vector<Interval> ranges, operators;
    for (size_t i = 0; i < part.slices.size(); ++i) {
      const Interval slice{part.slices.start_ns[i], part.slices.end_ns(i)};
      recording.add(slice.start, slice.end);
      const StringId name = part.slices.name_id[i];
      const Category kind = trace.categories[part.slices.category_id[i]].kind;
      if (kind == Category::kCpuOp) operators.push_back(slice);
      if (!compiling[name] || is_device_work(kind) || kind == Category::kGpuAnnotation) continue;
      ranges.push_back(slice);
      if (part.slices.dur_ns[i] <= longest_ns) continue;
      longest_ns = part.slices.dur_ns[i];
      longest = trace.names.text(name);
    }
    all_ns += recording.length_ns();
    if (ranges.empty()) continue;
    ranges = union_of(std::move(ranges));
    compile_ns += length_of(ranges);
    in_operators_ns += shared_length(union_of(std::move(operators)), ranges);
    last_ns = std::max(last_ns, between_ns(recording.start_ns, ranges.back().end));
  }
  const double share = share_or_zero(compile_ns, all_ns);
  if (share < kCompileShare) return;
  Finding x;
  x.id = "host.compile";
  x.weight = facts.ranks.empty() ? share : 0;  // the idle time of devices has owners
  x.value = percent(share);
  Args args;
  args.set("name", std::string(longest));
  args.set("time", human_duration(compile_ns)).set("end", human_duration(last_ns));
  args.flag("several", trace.parts.size() > 1);
  args.flag("operators", facts.ranks.empty() && 2 * in_operators_ns > compile_ns);
  say(x, "profile.compile", args);
  if (longest.ends_with(" (dynamo_timed)")) x.detail += words("profile.compile.torch");
  out.push_back(std::move(x));
}

}  // namespace stageline
