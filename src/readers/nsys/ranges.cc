// NVTX_EVENTS: what programs and libraries say of themselves.
#include "model/source_limits.h"
#include "readers/nsys/problems.h"
#include "readers/nsys/tables.h"

namespace stageline::nsys {
namespace {

// The content of a payload of an NVTX range, as NCCL attaches it to its calls, by the names of its fields; −1: it has
// no such field.
struct NcclPayload {
  uint64_t communicator = 0;
  int64_t ranks = -1, rank = -1, device = -1;  // of calls that make a communicator
  int64_t bytes = -1, root = -1, peer = -1;    // bytes: "Message size [bytes]"
  bool is_known = false;
};

class PayloadSchemas {
 public:
  // NVTX_PAYLOAD_SCHEMA_ENTRIES; without the table nothing is known.
  explicit PayloadSchemas(const SqliteDb& db);
  // The bytes of NVTX_EVENTS.binaryData: a header of 32 bytes (domain, schema, size, offset), then the fields.
  NcclPayload read(std::string_view bytes) const;
  bool empty() const { return fields_.empty(); }

 private:
  struct Field {
    std::string name;
    size_t offset = 0, size = 0;
    bool is_signed = false;
  };
  std::map<uint64_t, std::vector<Field>> fields_;  // by schema
};

constexpr size_t kHeaderBytes = 32;
constexpr size_t kMaxFields = 4096;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// Bytes of NVTX's own entry types, nvtxPayloadEntryType: 1 char … 18 uint64, 22 size_t; 0: of no size that is read.
// From 2^24 on a type is another schema, an enumeration here.
constexpr size_t kTypeBytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8, 0, 0, 0, 8};
constexpr size_t kEnumerationBytes = 4;

size_t size_of_type(int64_t type) {
  if (type >= 0 && type < std::ssize(kTypeBytes)) return kTypeBytes[type];
  return type >= (int64_t{1} << 24) ? kEnumerationBytes : 0;
}

// From short on, the odd ones are signed.
bool is_signed_type(int64_t type) { return type >= 3 && type <= 17 && type % 2 == 1; }

PayloadSchemas::PayloadSchemas(const SqliteDb& db) {
  std::set<std::pair<uint64_t, int64_t>> seen;  // rows repeat once per process
  SqliteRows rows = rows_of(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"schemaId", "idx", "type", "name", "offset?"}, nullptr,
                            "ORDER BY schemaId, idx");
  size_t count = 0;
  while (rows.next() && count < kMaxFields) {
    const uint64_t schema = rows.integer(0);
    if (!seen.insert({schema, rows.integer(1)}).second) continue;
    Field field;
    field.name = rows.text(3);
    field.offset = std::max<int64_t>(0, rows.integer_or(4, 0));
    field.size = size_of_type(rows.integer(2));
    field.is_signed = is_signed_type(rows.integer(2));
    fields_[schema].push_back(std::move(field));
    ++count;
  }
}

NcclPayload PayloadSchemas::read(std::string_view bytes) const {
  NcclPayload out;
  if (bytes.size() < kHeaderBytes) return out;
  const auto schema = fields_.find(little_endian(bytes.substr(8, 8)));
  if (schema == fields_.end()) return out;
  const std::string_view payload = bytes.substr(kHeaderBytes);
  for (const Field& field : schema->second) {
    if (field.size == 0 || field.offset > payload.size() || payload.size() - field.offset < field.size) continue;
    uint64_t value = little_endian(payload.substr(field.offset, field.size));
    if (field.is_signed && field.size < 8 && (value >> (8 * field.size - 1)) != 0)
      value |= ~uint64_t{0} << (8 * field.size);
    const int64_t number = value;
    const auto says = [&](std::string_view word) { return field.name.find(word) != std::string::npos; };
    if (says("ommunicator ID")) out.communicator = value, out.is_known = true;
    else if (says("No. of ranks")) out.ranks = number;
    else if (says("Peer rank")) out.peer = number;
    else if (field.name == "Rank") out.rank = number;
    else if (says("CUDA device")) out.device = number;
    else if (says("Message size")) out.bytes = number;
    else if (field.name == "Root") out.root = number;
  }
  return out;
}

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
    tables_.report.notes.add(problem::nsys_open_ranges, {tables_.report.path}, open_);
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
    if (!last_domain_ || last_domain_id_ != id) last_domain_ = &domains_[id], last_domain_id_ = id;
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
    if (end < 0) ++open_, end = std::max(start, tables_.thread(*p, tid).last_ns);
    add_range(*p, rows, text, tid, start, end);
  }

  void add_range(Process& process, const SqliteRows& rows, std::string_view text, int64_t tid, int64_t start,
                 int64_t end) {
    if (const TorchRange torch = torch_range(text); torch.is_operator) {
      const uint32_t row =
          tables_.host_row(process, kOperator, tid, start, end, process.out.text(valid_utf8(torch.name)));
      if (row == kNoRow) return;
      if (torch.sequence >= 0) process.out.operators.push_back({row, 0, torch.sequence});
      if (!torch.sizes.empty()) process.out.inputs.push_back({row, process.out.text(valid_utf8(torch.sizes)), 0, 0});
      return;
    }
    const Process::KnownRange known = process.known_range(text);
    const uint32_t row = tables_.host_row(process, kAnnotation, tid, start, end, known.name);
    if (row == kNoRow) return;
    const int64_t domain_id = rows.integer_or(6, 0);
    const Domain& of = domain(domain_id);
    if (of.is_nccl || (domain_id != 0 && known.starts_with_nccl)) {
      add_call(process, rows, known.name, tid, start, end);
      return;
    }
    process.out.ranges.push_back(
        {row, known.full, process.out.text(of.name), known.micro_batch, known.chunk, known.stage, known.step});
    process.launched.add_range({tid, start, end, row, 0});
    process.has_profiler_steps = process.has_profiler_steps || known.is_profiler_step;
    if (known.is_step) process.steps.push_back({tid, known.step_number, start, end, known.full});
  }

  // Records the arguments of NCCL's call, for the kernels it launches.
  void add_call(Process& process, const SqliteRows& rows, uint32_t name, int64_t tid, int64_t start, int64_t end) {
    if (rows.is_null(8)) return;
    const NcclPayload payload = schemas_.read(rows.text(8));
    if (!payload.is_known) return;
    ++payloads_;
    if (payload.rank >= 0 && payload.ranks > process.communicator_size)
      process.communicator_rank = payload.rank, process.communicator_size = payload.ranks;
    if (payload.ranks > 0) process.communicator_sizes[payload.communicator] = payload.ranks;
    if (payload.bytes < 0) return;
    Process::Call call{tid, start, end, payload.communicator, {}};
    const std::string short_name(process.out.text_of(name));
    call.fact.name =
        process.out.text(short_name.starts_with("nccl") ? std::string_view(short_name).substr(4) : short_name);
    call.fact.group = process.out.text("communicator " + std::to_string(payload.communicator));
    call.fact.peer = payload.peer;
    call.fact.bytes = payload.bytes;
    call.fact.seq = process.communicator_calls[payload.communicator]++;
    process.calls.push_back(call);
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
