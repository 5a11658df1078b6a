#include "readers/primus/rank_file.h"

#include <simdjson.h>

#include "base/json_events.h"
#include "base/json_token.h"
#include "readers/common/ranks.h"
#include "readers/primus/problems.h"

namespace stageline::primus {
namespace {

namespace od = simdjson::ondemand;

constexpr size_t kMaxFileBytes = size_t{1} << 29;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr int kMilliseconds = 6;

// The three passes, and the prefixes of their lists' names: fwd_start, fwd_end, fwd_minibatch, fwd_chunk ….
struct Pass {
  std::string_view prefix;
  CellKind kind;
  std::string_view name;
};
constexpr std::array<Pass, 3> kPasses = {{{"fwd_", CellKind::kForward, "forward"},
                                          {"bwd_", CellKind::kBackward, "backward"},
                                          {"wgrad_", CellKind::kWeightGrad, "weight grad"}}};
constexpr std::array<std::string_view, 4> kLists = {"start", "end", "minibatch", "chunk"};
enum List : size_t { kStart, kEnd, kMinibatch, kChunk };

using Texts = std::vector<std::string_view>;  // numbers as written in the source
struct Iteration {
  std::array<std::array<Texts, 4>, 3> lists;  // index: pass, list
  std::string_view total;
};

bool read_list(od::value value, std::string_view json, Texts& out) {
  if (raw_token(value, json) == "null") return true;
  od::array array;
  if (value.get_array().get(array)) return false;
  for (auto element : array) {
    od::value number;
    if (element.get(number)) return false;
    out.push_back(raw_token(number, json));
  }
  return true;
}

class RankReader {
 public:
  explicit RankReader(const RankFile& file) : file_(file) {}

  Result<RankOps> read(Progress* progress) {
    TRY(text, read_all(file_.path, kMaxFileBytes, progress));
    const size_t size = text->size();
    text->append(kJsonPaddingBytes, ' ');
    const std::string_view json(text->data(), size);
    size_t at = json.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (at == std::string_view::npos || json[at] != '{')
      return make_error(ErrorCode::kBadInput, "not a JSON object of iterations",
                        "expected {\"1\": {\"total\": …, \"fwd_start\": […], …}, …} as Primus --dump_pp_data writes",
                        {file_.path, 0, 0});
    ++at;
    for (;;) {
      at = json.find_first_not_of(" \t\r\n,", at);
      if (at == std::string_view::npos) {
        lose(problem::primus_truncated, size);
        break;
      }
      if (json[at] == '}') break;
      const size_t open = json.find('{', at);
      const size_t end = open == std::string_view::npos ? open : after_closing_brace(json, open);
      if (end == std::string_view::npos) {
        lose(problem::primus_truncated, at);
        break;
      }
      take(json.substr(at, open - at), json.substr(open, end - open), open);
      at = end;
    }
    return std::move(out_);
  }

 private:
  void lose(const Problem& problem, size_t offset, int64_t count = 1) {
    out_.diagnostics.add(problem, {file_.path, 0, static_cast<int64_t>(offset)}, count);
  }

  void take(std::string_view key, std::string_view body, size_t offset) {
    const std::string_view quoted = trim(key.substr(0, key.rfind(':')));
    const bool named = quoted.size() > 2 && quoted.front() == '"' && quoted.back() == '"';
    const auto step = named ? parse_index(quoted.substr(1, quoted.size() - 2), kMaxStepNumber) : std::nullopt;
    Iteration iteration;
    if (!step || *step == kUnknown || !parse(body, iteration)) return lose(problem::primus_bad_iteration, offset);
    if (!out_.total_ns.emplace(*step, 0).second) return lose(problem::primus_repeated_iteration, offset);
    if (const auto total = parse_decimal_ns(iteration.total, kMilliseconds);
        total && *total >= 0 && *total < kMaxTimeNs)
      out_.total_ns[*step] = *total;
    for (size_t p = 0; p < kPasses.size(); ++p) take_pass(kPasses[p], iteration.lists[p], *step, offset);
  }

  bool parse(std::string_view body, Iteration& out) {
    od::document document;
    od::object object;
    if (parser_.iterate(body, body.size() + kJsonPaddingBytes).get(document) || document.get_object().get(object))
      return false;
    uint32_t seen = 0;
    for (auto field : object) {
      std::string_view key;
      od::value value;
      if (field.unescaped_key().get(key) || field.value().get(value)) return false;
      if (key == "total") out.total = raw_token(value, body);
      for (size_t p = 0; p < kPasses.size(); ++p) {
        if (!key.starts_with(kPasses[p].prefix)) continue;
        for (size_t l = 0; l < kLists.size(); ++l) {
          if (key.substr(kPasses[p].prefix.size()) != kLists[l]) continue;
          const uint32_t bit = 1u << (p * kLists.size() + l);
          if (seen & bit) return false;  // a list occurs twice, so neither can be trusted
          seen |= bit;
          if (!read_list(value, body, out.lists[p][l])) return false;
        }
      }
    }
    return true;
  }

  void take_pass(const Pass& pass, const std::array<Texts, 4>& lists, int32_t step, size_t offset) {
    const size_t count = std::min(lists[kStart].size(), lists[kEnd].size());
    if (lists[kStart].size() != lists[kEnd].size())
      lose(problem::primus_list_lengths, offset, std::max(lists[kStart].size(), lists[kEnd].size()) - count);
    const bool numbered = lists[kMinibatch].size() >= count && count > 0;
    const bool chunked = lists[kChunk].size() >= count && count > 0;
    for (size_t k = 0; k < count; ++k) {
      Op op;
      const auto start = parse_decimal_ns(lists[kStart][k], kMilliseconds);
      const auto end = parse_decimal_ns(lists[kEnd][k], kMilliseconds);
      if (!start || !end || !sane_interval(*start, *end)) {
        lose(problem::primus_bad_time, offset);
        out_.lossy_steps.push_back(step);
        continue;
      }
      InterleavedPosition position{0, static_cast<int32_t>(std::min<int64_t>(k, kMaxMicroBatchNumber))};
      if (file_.vp_size > 1) {
        position = interleaved_position(k, count, file_.pp_size, file_.vp_size, pass.kind == CellKind::kForward);
        out_.chunks_assigned += !(numbered && chunked);
      }
      if (numbered) position.micro_batch = parse_index(lists[kMinibatch][k], kMaxMicroBatchNumber).value_or(kUnknown);
      if (chunked) position.chunk = parse_index(lists[kChunk][k], kMaxChunkNumber).value_or(kUnknown);
      op.start_ns = *start;
      op.end_ns = *end;
      op.rank = op.stage = file_.pp_rank;
      op.dp = 0;
      op.step = step;
      op.chunk = position.chunk;
      op.micro_batch = position.micro_batch;
      op.kind = pass.kind;
      op.name_id = static_cast<StringId>(&pass - kPasses.data());  // the reader interns the names
      op.lane = kind_lane(pass.kind);
      op.file = file_.file;
      op.file_index = static_cast<uint32_t>(out_.ops.size());
      out_.ops.push_back(op);
    }
  }

  const RankFile& file_;
  RankOps out_;
  od::parser parser_;
};

}  // namespace

Result<RankOps> read_rank(const RankFile& file, Progress* progress) { return RankReader(file).read(progress); }

Config read_config(const std::string& path) {
  Config config;
  const Result<std::string> text = read_all(path, kMaxConfigBytes);
  if (!text) return config;
  od::parser parser;
  const simdjson::padded_string padded(*text);
  const std::string_view json(padded);
  od::document document;
  od::object object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) return config;
  for (auto field : object) {
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return config;
    const auto number = parse_int(raw_token(value, json));
    if (!number || *number < 0 || *number > kMaxRankNumber) continue;
    if (key == "world_size") config.world_size = *number;
    if (key == "pp_size") config.pp_size = *number;
    if (key == "vp_size") config.vp_size = *number;
    if (key == "dp_size") config.dp_size = *number;
    if (key == "tp_size") config.tp_size = *number;
    if (key == "num_mbs") config.micro_batches = *number;
  }
  return config;
}

}  // namespace stageline::primus
