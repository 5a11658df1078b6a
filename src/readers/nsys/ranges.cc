// NVTX_EVENTS: what programs and libraries say of themselves.
#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"
#include "model/source_limits.h"
#include "readers/nsys/payload.h"
#include "readers/nsys/problems.h"
#include "readers/nsys/tables.h"
#include "readers/nsys/words.h"

namespace stageline::nsys {
namespace {

using namespace gpu_rows;

// nvtxEventType in NVTX_EVENTS.
constexpr int64_t kNvtxMark = 34, kNvtxPushPop = 59, kNvtxStartEnd = 60, kNvtxDomain = 75;

class RangeReader {
 public:
  explicit RangeReader(Tables& tables) : tables_(tables), schemas_(tables.db) {}

  void read() {
    tables_.scan("NVTX_EVENTS", {"eventType", "domainId?", "text?", "textId?"}, [&](const SqliteRows& rows) {
      if (rows.integer(0) != kNvtxDomain) return;
      std::string& name = domains_[rows.integer_or(1, 0)].name;
      name = rows.is_null(2) ? tables_.raw_text(rows.integer_or(3, -1)) : rows.text(2);
    });
    for (auto& [id, domain] : domains_) domain.is_nccl = id != 0 && domain.name == "NCCL";
    tables_.scan(
        "NVTX_EVENTS",
        {"start", "end?", "eventType", "globalTid", "text?", "textId?", "domainId?", "endGlobalTid?", "binaryData?"},
        [&](const SqliteRows& rows) { read_event(rows); });
    if (open_ > 0) tables_.report.notes.add(problem::nsys_open_ranges, {tables_.report.path}, open_);
    int64_t nccl_kernels = 0;
    for (const auto& [id, p] : tables_.processes) nccl_kernels += p->nccl_kernels;
    if (nccl_kernels > 0 && payloads_ == 0)
      tables_.report.notes.add(problem::nsys_no_nccl_sizes, {tables_.report.path}, nccl_kernels);
  }

 private:
  struct Domain {
    std::string name;
    bool is_nccl = false;
  };

  const Domain& domain(int64_t id) {
    if (!last_domain_ || last_domain_id_ != id) {
      last_domain_ = &domains_[id];
      last_domain_id_ = id;
    }
    return *last_domain_;
  }

  void read_event(const SqliteRows& rows) {
    const int64_t type = rows.integer(2);
    if (type != kNvtxPushPop && type != kNvtxStartEnd && type != kNvtxMark) return;
    const int64_t tid = rows.integer(3);
    Process* p = tables_.process(tid);
    if (!p) return;
    const std::string_view text = rows.is_null(4) ? tables_.raw_text(rows.integer_or(5, -1)) : rows.text(4);
    const int64_t start = tables_.time(rows, 0);
    if (type == kNvtxMark) {
      const uint32_t lane = tables_.thread(*p, tid).lane;
      if (start >= 0 && start <= kMaxTimeNs)
        p->out.part.marks.push_back(
            {start, p->out.text(valid_utf8(text)), lane, static_cast<uint32_t>(p->out.part.marks.size())});
      return;
    }
    int64_t end = tables_.time(rows, 1);
    if (end < 0) {
      ++open_;
      end = std::max(start, tables_.thread(*p, tid).last_ns);
    }
    add_range(*p, rows, text, tid, start, end);
  }

  void add_range(Process& p, const SqliteRows& rows, std::string_view text, int64_t tid, int64_t start, int64_t end) {
    if (const TorchRange torch = torch_range(text); torch.is_operator) {
      const uint32_t row = tables_.host_row(p, kOperator, tid, start, end, p.out.text(valid_utf8(torch.name)));
      if (row == kNoRow) return;
      if (torch.sequence >= 0) p.out.operators.push_back({row, 0, torch.sequence});
      if (!torch.sizes.empty()) p.out.inputs.push_back({row, p.out.text(valid_utf8(torch.sizes)), 0, 0});
      return;
    }
    const Process::KnownRange known = p.known_range(text);
    const uint32_t row = tables_.host_row(p, kAnnotation, tid, start, end, known.name);
    if (row == kNoRow) return;
    const int64_t domain_id = rows.integer_or(6, 0);
    const Domain& of = domain(domain_id);
    if (of.is_nccl || (domain_id != 0 && known.starts_with_nccl)) {
      add_call(p, rows, known.name, tid, start, end);
      return;
    }
    p.out.ranges.push_back(
        {row, known.full, p.out.text(of.name), known.micro_batch, known.chunk, known.stage, known.step});
    p.launched.add_range({tid, start, end, row, 0});
    p.has_profiler_steps = p.has_profiler_steps || known.is_profiler_step;
    if (known.is_step) p.steps.push_back({tid, known.step_number, start, end, known.full});
  }

  // Records the arguments of NCCL's call, for the kernels it launches.
  void add_call(Process& p, const SqliteRows& rows, uint32_t name, int64_t tid, int64_t start, int64_t end) {
    if (rows.is_null(8)) return;
    const NcclPayload payload = schemas_.read(rows.text(8));
    if (!payload.is_known) return;
    ++payloads_;
    if (payload.rank >= 0 && payload.ranks > p.communicator_size)
      p.communicator_rank = payload.rank, p.communicator_size = payload.ranks;
    if (payload.ranks > 0) p.communicator_sizes[payload.communicator] = payload.ranks;
    if (payload.bytes < 0) return;
    Process::Call call{tid, start, end, payload.communicator, {}};
    const std::string short_name(p.out.text_of(name));
    call.fact.name = p.out.text(short_name.starts_with("nccl") ? std::string_view(short_name).substr(4) : short_name);
    call.fact.group = p.out.text("communicator " + std::to_string(payload.communicator));
    call.fact.peer = payload.peer;
    call.fact.bytes = payload.bytes;
    call.fact.seq = p.communicator_calls[payload.communicator]++;
    p.calls.push_back(call);
  }

  Tables& tables_;
  PayloadSchemas schemas_;
  std::map<int64_t, Domain> domains_;
  const Domain* last_domain_ = nullptr;
  int64_t last_domain_id_ = 0;
  int64_t open_ = 0, payloads_ = 0;
};

}  // namespace

void read_ranges(Tables& tables) { RangeReader(tables).read(); }

}  // namespace stageline::nsys
