// Reads the host's calls and how they are connected: CANN_API (calls that launched device work) and PYTORCH_API
// (operators, Python frames, the task queue).
//
//   PYTORCH_API.connectionId = CONNECTION_IDS.id ── connectionId of ── device work and its launch: the operator owns it
//                                                └─ a second PYTORCH_API row: enqueue → dequeue, forward → backward
#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

constexpr int64_t kTorchOp = 50001, kTorchQueue = 50002, kTorchPython = 50003, kTorchMstx = 50004;

uint32_t lane_of(RankDb& rank, const SqliteRows& rows, int column) {
  const uint64_t tid = rows.integer(column);
  return rank.out.host_lane(tid >> 32, tid & 0xffffffffu);
}

void read_cann_calls(RankDb& rank, NumberMap& launch_of_connection) {
  rank.scan("CANN_API", {"startNs", "endNs", "name", "globalTid", "connectionId?"}, [&](const SqliteRows& rows) {
    const int64_t connection = rows.integer_or(4, -1);
    // A pipeline needs only the calls that launched communication, which give its step.
    if (rank.only_ranges && rank.op_of_connection.get(connection) == kNoIndex) return;
    int64_t start = 0, end = 0;
    rank.times(rows, 0, start, end);
    const uint32_t row = rank.out.add(lane_of(rank, rows, 3), RowKind::kCannApi, start, end, rank.texts.of(rows, 2),
                                      correlation_of(connection));
    if (row != kNoRow) launch_of_connection.put(connection, row);
  });
}

// Returns lists as Kineto writes them: "4096,4096;4096" → "[[4096, 4096], [4096]]", "float;\r\nScalar" → "[\"float\",
// \"Scalar\"]".
std::string as_list(std::string_view text, bool quoted) {
  std::string out = "[", item;
  bool first = true;
  const auto close = [&] {
    if (!first) out += ", ";
    first = false;
    out += quoted ? "\"" + item + "\"" : "[" + item + "]";
    item.clear();
  };
  for (const char c : text)
    if (c == ';') close();
    else if (c == ',' && !quoted) item += ", ";
    else if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= ' ' && (quoted || c != ' ')) item += c;
  close();
  return out + "]";
}

class Operators {
 public:
  explicit Operators(RankDb& rank) : rank_(rank) {}

  void read(const NumberMap& launch_of_connection) {
    rank_.scan("PYTORCH_API",
               {"startNs", "endNs", "name", "globalTid", "type?", "connectionId?", "sequenceNumber?", "fwdThreadId?",
                "inputShapes?", "inputDtypes?", "callchainId?"},
               [&](const SqliteRows& rows) { one(rows); });
    if (rows_.size() > 0) connect(launch_of_connection);
    if (!chains_.empty()) call_chains();
  }

 private:
  void one(const SqliteRows& rows) {
    int64_t start = 0, end = 0;
    rank_.times(rows, 0, start, end);
    const int64_t type = rows.integer_or(4, kTorchOp);
    const uint32_t name = rank_.texts.of(rows, 2);
    RowKind kind = type == kTorchPython ? RowKind::kPython : type == kTorchMstx ? RowKind::kRange : RowKind::kOperator;
    if (kind == RowKind::kOperator && rank_.out.text_of(name).starts_with("ProfilerStep#")) kind = RowKind::kAnnotation;
    const uint32_t row = rank_.out.add(lane_of(rank_, rows, 3), kind, start, end, name);
    if (row == kNoRow) return;
    if (!rows.is_null(5)) {
      const int64_t connection = rows.integer(5);
      const auto index = static_cast<uint32_t>(rows_.size());
      if (of_connection_.put(connection, index) == index) rows_.push_back({row, type});
    }
    if (kind != RowKind::kOperator) return;
    const int64_t sequence = rows.integer_or(6, -1);
    const int64_t thread = rows.integer_or(7, 0);
    if (sequence >= 0) rank_.out.operators.push_back({row, static_cast<int32_t>(thread), sequence});
    if (!rows.is_null(8) || !rows.is_null(9))
      rank_.out.inputs.push_back({row, list(rows, 8, false), list(rows, 9, true), 0});
    if (!rows.is_null(10)) chains_.emplace_back(rows.integer(10), row);
  }

  uint32_t list(const SqliteRows& rows, int column, bool quoted) {
    const uint32_t text = rank_.texts.of(rows, column);
    if (text == 0) return 0;
    uint32_t& known = (quoted ? type_lists_ : shape_lists_)[text];
    if (known == 0) known = rank_.out.text(as_list(rank_.out.text_of(text), quoted));
    return known;
  }

  // An operator's number stands for all device work it launched, for its partner across the task queue, and for the
  // backward of its forward.
  void connect(const NumberMap& launch_of_connection) {
    NumberMap first_of_connection;
    rank_.scan("CONNECTION_IDS", {"id", "connectionId"}, [&](const SqliteRows& rows) {
      const uint32_t index = of_connection_.get(rows.integer(0));
      if (index == kNoIndex) return;
      const Torch& torch = rows_[index];
      const int64_t connection = rows.integer(1);
      if (const uint32_t launch = launch_of_connection.get(connection); launch != NumberMap::kNone) {
        if (torch.type == kTorchOp) {
          rank_.out.own(launch, torch.row);
          owner_.put(connection, torch.row);
        }
        return;
      }
      const uint32_t other = first_of_connection.put(connection, index);
      if (other == index) return;
      link(rows_[other], torch);
      first_of_connection.replace(connection, index);
    });
  }

  struct Torch {
    uint32_t row;
    int64_t type;
  };
  void link(const Torch& a, const Torch& b) {
    const bool queue = a.type == kTorchQueue || b.type == kTorchQueue;
    const bool turned = rank_.out.start_of(b.row) < rank_.out.start_of(a.row);
    rank_.out.link(turned ? b.row : a.row, turned ? a.row : b.row,
                   queue ? SliceLinkKind::kFlow : SliceLinkKind::kForwardBackward);
  }

  // Adds the stacks of operators that name one: entries with ";" between, innermost first. Several operators may share
  // a chain.
  void call_chains() {
    std::ranges::sort(chains_);
    struct Chain {
      std::vector<std::pair<int64_t, uint32_t>> entries;
    };
    std::vector<int64_t> ids;
    for (const auto& [id, row] : chains_)
      if (ids.empty() || ids.back() != id) ids.push_back(id);
    std::vector<Chain> found(ids.size());
    rank_.scan("PYTORCH_CALLCHAINS", {"id", "stack", "stackDepth?"}, [&](const SqliteRows& rows) {
      const auto it = std::ranges::lower_bound(ids, rows.integer(0));
      if (it == ids.end() || *it != rows.integer(0)) return;
      found[it - ids.begin()].entries.emplace_back(rows.integer_or(2, 0), rank_.texts.of(rows, 1));
    });
    std::vector<uint32_t> text(ids.size(), 0);
    size_t bytes = 0;
    for (size_t c = 0; c < found.size(); ++c) {
      std::ranges::sort(found[c].entries);
      std::string stack;
      for (const auto& [depth, entry] : found[c].entries) {
        if (stack.size() + rank_.out.text_of(entry).size() > kMaxStackBytes) break;
        if (!stack.empty()) stack += ';';
        stack += rank_.out.text_of(entry);
      }
      if (bytes + stack.size() > kMaxBytesOfStacks) {
        rank_.out.notes.add(problem::ascend_many_stacks, {rank_.db.path()});
        break;
      }
      bytes += stack.size();
      text[c] = rank_.out.text(stack);
    }
    for (const auto& [id, row] : chains_) {
      const size_t c = std::ranges::lower_bound(ids, id) - ids.begin();
      if (text[c] != 0) rank_.out.stacks.push_back({row, text[c], 0});
    }
  }

  static constexpr size_t kMaxStackBytes = 65536;
  static constexpr size_t kMaxBytesOfStacks = size_t{1} << 28;
  RankDb& rank_;
  std::vector<Torch> rows_;
  NumberMap of_connection_;  // PYTORCH_API.connectionId → index into rows_
  NumberMap owner_;
  std::vector<std::pair<int64_t, uint32_t>> chains_;  // (callchainId, row)
  std::unordered_map<uint32_t, uint32_t> shape_lists_, type_lists_;
};

}  // namespace

void read_host_calls(RankDb& rank) {
  NumberMap launch_of_connection;
  read_cann_calls(rank, launch_of_connection);
  if (rank.only_ranges) return;
  Operators(rank).read(launch_of_connection);
  rank.scan("GC_RECORD", {"startNs", "endNs", "globalTid?"}, [&](const SqliteRows& rows) {
    int64_t start = 0, end = 0;
    rank.times(rows, 0, start, end);
    rank.out.add(lane_of(rank, rows, 2), RowKind::kGarbage, start, end, rank.out.text("garbage collection"));
  });
}

}  // namespace stageline::ascend
