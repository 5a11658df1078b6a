#include "diagnosis/profile/flight_findings.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <string>
#include <tuple>

#include "base/counted.h"
#include "base/number.h"
#include "facts/flight_facts.h"

namespace stageline {
namespace {

constexpr size_t kMostRanksNamed = 8;

// "2026-11-23 04:21:07.123 UTC": the host's clock.
std::string clock_text(int64_t ns) {
  const std::time_t seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm parts{};
  if (ns <= 0 || !gmtime_r(&seconds, &parts)) return "an unknown time";
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  const std::string ms = std::to_string(1000 + ns / 1'000'000 % 1000);
  return std::string(text, size) + "." + ms.substr(1) + " UTC";
}

std::string ranks_text(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanksNamed); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kMostRanksNamed
             ? text + " and " + grouped(static_cast<int64_t>(ranks.size() - kMostRanksNamed)) + " more"
             : text;
}
std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}
std::string ranks_zh(const std::vector<int32_t>& ranks) {
  std::string text = "rank ";
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanksNamed); ++i)
    text += (i > 0 ? "、" : "") + std::to_string(ranks[i]);
  return ranks.size() > kMostRanksNamed ? text + " 等 " + grouped(static_cast<int64_t>(ranks.size())) + " 个" : text;
}

// "all_reduce 7 of default_pg (group 0)", "message 3 from rank 0 to rank 1 of pipeline"
std::string what_en(const Trace& trace, const FlightProblem& p) {
  const std::string group = flight_group_text(trace.flight_groups[static_cast<size_t>(p.group)]);
  if (p.is_p2p)
    return "message " + std::to_string(p.sequence) + " from rank " + std::to_string(p.src) + " to rank " +
           std::to_string(p.dst) + " of " + group;
  return std::string(trace.names.text(p.op)) + " " + std::to_string(p.sequence) + " of " + group;
}
std::string what_zh(const Trace& trace, const FlightProblem& p) {
  const std::string group = flight_group_text(trace.flight_groups[static_cast<size_t>(p.group)]);
  if (p.is_p2p)
    return group + " 中 rank " + std::to_string(p.src) + " 到 rank " + std::to_string(p.dst) + " 的第 " +
           std::to_string(p.sequence) + " 条消息";
  return group + " 的第 " + std::to_string(p.sequence) + " 次 " + std::string(trace.names.text(p.op));
}

const FlightCall* call_of(const Trace& trace, int32_t part, uint32_t slice) {
  if (part < 0 || slice == kNoSliceIndex) return nullptr;
  return fact_of(trace.parts[static_cast<size_t>(part)].flight_calls, slice);
}

// Where the shown call was made.
std::string place_en(const Trace& trace, const FlightProblem& p) {
  const std::string frame = flight_frame_text(trace, p.part, p.slice);
  return frame.empty() ? "" : " at " + frame;
}

// What a rank that never came did last.
void say_last_call(const Trace& trace, const FlightProblem& p, std::string& en, std::string& zh) {
  const FlightCall* last = call_of(trace, p.part, p.slice);
  const std::string rank = std::to_string(trace.parts[static_cast<size_t>(p.part)].rank);
  if (!last) {
    en += " The dump of rank " + rank + " holds no call at all.";
    zh += " rank " + rank + " 的转储中没有任何调用。";
    return;
  }
  const std::string frame = flight_frame_text(trace, p.part, p.slice);
  const bool through = last->state == FlightState::kCompleted;
  en += " The last call of rank " + rank + " was " + flight_call_text(trace, *last) +
        (frame.empty() ? "" : ", made at " + frame) +
        (through ? "; it is through, so look at what the rank does after it."
                 : "; it is not through either, so rank " + rank + " waits there.");
  zh +=
      " rank " + rank + " 的最后一次调用是 " + flight_call_text(trace, *last) +
      (frame.empty() ? "" : "，位于 " + frame) +
      (through ? "；该调用已完成，请查看此后该 rank 在做什么。" : "；该调用也未完成，rank " + rank + " 正在其中等待。");
}

Finding finding_of(const Trace& trace, const FlightProblem& p) {
  Finding f;
  f.evidence = {"flight-recorder", "flight-problems"};
  if (p.part >= 0) f.rank = trace.parts[static_cast<size_t>(p.part)].rank;
  if (p.culprits.size() == 1) f.cause = "rank:" + std::to_string(p.culprits.front());
  const std::string en = what_en(trace, p), zh = what_zh(trace, p), since = clock_text(p.since_ns);
  f.value = counted(static_cast<int64_t>(p.waiting.size()), "rank", "ranks");
  f.value_note_en = p.waiting.size() == 1 ? "waits in it" : "wait in it";
  f.value_note_zh = "在其中等待";
  const bool several = p.culprits.size() > 1;
  switch (p.verdict) {
    case FlightVerdict::kMissing:
      f.id = "collective.missing";
      f.title_en = capital(ranks_text(p.culprits)) + " never made " + en;
      f.title_zh = ranks_zh(p.culprits) + " 从未发起 " + zh;
      f.detail_en =
          capital(ranks_text(p.waiting)) + (p.waiting.size() == 1 ? " waits" : " wait") + " in it since " + since + ".";
      f.detail_zh = ranks_zh(p.waiting) + " 自 " + since + " 起在其中等待。";
      say_last_call(trace, p, f.detail_en, f.detail_zh);
      break;
    case FlightVerdict::kType:
    case FlightVerdict::kSizes:
    case FlightVerdict::kDtype: {
      f.id = "collective.mismatch";
      const bool type = p.verdict == FlightVerdict::kType, sizes = p.verdict == FlightVerdict::kSizes;
      const std::string kind = type ? "operation" : sizes ? "sizes" : "data types";
      const std::string kind_zh = type ? "操作" : sizes ? "大小" : "数据类型";
      if (p.culprits.empty()) {
        f.title_en = "The " + kind + " of " + en + " do not fit each other";
        if (type) f.title_en = "Ranks made different operations as " + en;
        f.title_zh = zh + " 的" + kind_zh + "彼此不一致";
      } else {
        f.title_en =
            capital(ranks_text(p.culprits)) + (several ? " differ" : " differs") + " in the " + kind + " of " + en;
        f.title_zh = ranks_zh(p.culprits) + " 在 " + zh + " 中的" + kind_zh + "与其他 rank 不同";
      }
      f.detail_en =
          (p.expected.empty() ? "No side has more ranks: " : "Most have " + p.expected + "; ") + p.found +
          place_en(trace, p) + "." +
          (p.waiting.empty() ? ""
                             : " " + capital(ranks_text(p.waiting)) + (p.waiting.size() == 1 ? " waits" : " wait") +
                                   " in it since " + since + ".");
      f.detail_zh = (p.expected.empty() ? "没有哪一方占多数：" : "多数为 " + p.expected + "；") + p.found + "。" +
                    (p.waiting.empty() ? "" : ranks_zh(p.waiting) + " 自 " + since + " 起在其中等待。");
      break;
    }
    case FlightVerdict::kStuck:
    case FlightVerdict::kUnfinished:
      f.id = "collective.stuck";
      f.title_en = capital(ranks_text(p.waiting)) + (p.waiting.size() == 1 ? " is" : " are") + " not through with " +
                   en + ", which the other ranks have finished";
      f.title_zh = ranks_zh(p.waiting) + " 尚未完成 " + zh + "，其他 rank 已完成";
      f.detail_en = "All members made the same call; these wait since " + since + place_en(trace, p) + ".";
      f.detail_zh = "所有成员都发起了同一调用；它们自 " + since + " 起等待。";
      if (!p.not_started.empty()) {
        f.detail_en += " " + capital(ranks_text(p.not_started)) + (p.not_started.size() == 1 ? " has" : " have") +
                       " only enqueued it: earlier work on the same stream is not through.";
        f.detail_zh += ranks_zh(p.not_started) + " 只是将其入队：同一流上更早的工作尚未完成。";
      }
      break;
  }
  if (!p.without_dump.empty()) {
    f.detail_en += " There is no dump of " + ranks_text(p.without_dump) + ", so nobody can tell about " +
                   (p.without_dump.size() == 1 ? "it" : "them") + ".";
    f.detail_zh += " 没有 " + ranks_zh(p.without_dump) + " 的转储，无法判断。";
  }
  return f;
}

Finding cycle_finding(const FlightReport& report, const Trace& trace) {
  Finding f;
  f.id = "collective.cycle";
  f.evidence = {"flight-recorder", "flight-waits"};
  f.value = counted(static_cast<int64_t>(report.cycle.size()), "rank", "ranks");
  f.value_note_en = "wait in a ring";
  f.value_note_zh = "循环等待";
  f.rank = report.cycle.front();
  f.title_en = capital(ranks_text(report.cycle)) + " wait for each other in a ring";
  f.title_zh = ranks_zh(report.cycle) + " 循环等待";
  for (size_t i = 0; i < report.cycle.size(); ++i) {
    const int32_t rank = report.cycle[i], next = report.cycle[(i + 1) % report.cycle.size()];
    const auto wait =
        std::find_if(report.waits.begin(), report.waits.end(), [&](const FlightWait& w) { return w.rank == rank; });
    const std::string call =
        flight_call_text(trace, trace.parts[static_cast<size_t>(wait->part)].flight_calls[wait->call]);
    f.detail_en += (i > 0 ? "; rank " : "Rank ") + std::to_string(rank) + " waits in " + call + " for rank " +
                   std::to_string(next);
    f.detail_zh +=
        (i > 0 ? "；rank " : "rank ") + std::to_string(rank) + " 在 " + call + " 中等待 rank " + std::to_string(next);
  }
  f.detail_en += ". Groups that share ranks must be used in the same order on all of them.";
  f.detail_zh += "。共享 rank 的通信组必须在所有 rank 上按同样的顺序使用。";
  return f;
}

}  // namespace

Findings flight_findings(const Run& run) {
  const Trace& trace = run.trace();
  const FlightReport& report = flight_of(run);
  Findings out;
  Headline& h = out.headline;
  const std::string judged = grouped(report.judged);
  h.lead_en = counted(static_cast<int64_t>(trace.parts.size()), "rank", "ranks") + ", " +
              counted(static_cast<int64_t>(trace.flight_groups.size()), "group", "groups") + ", " +
              counted(report.calls, "call", "calls") + "; " + judged + " collectives and messages compared.";
  h.lead_zh = std::to_string(trace.parts.size()) + " 个 rank、" + std::to_string(trace.flight_groups.size()) +
              " 个通信组、" + grouped(report.calls) + " 次调用；比对了 " + judged + " 个集合通信与消息。";
  if (report.overwritten > 0) {
    h.lead_en +=
        " " + grouped(report.overwritten) + " more could not be compared: the ring of some rank had begun anew.";
    h.lead_zh += "另有 " + grouped(report.overwritten) + " 个无法比对：部分 rank 的环形缓冲区已被覆盖。";
  }
  h.closing_en = "Dumps tell the order of calls and who waits for whom, not what anything costs.";
  h.closing_zh = "转储说明调用的顺序以及谁在等待谁，不说明代价。";
  if (!report.cycle.empty()) out.list.push_back(cycle_finding(report, trace));
  // One finding a group and kind: what comes after the first follows from it.
  std::set<std::tuple<int32_t, FlightVerdict, int32_t, int32_t>> said;
  int64_t unfinished = 0;
  for (const FlightProblem& problem : report.problems) {
    if (problem.verdict == FlightVerdict::kUnfinished) {
      ++unfinished;
      continue;
    }
    if (said.insert({problem.group, problem.verdict, problem.src, problem.dst}).second)
      out.list.push_back(finding_of(trace, problem));
  }
  // Weights only keep the order: a dump has no times that could be won back.
  for (size_t i = 0; i < out.list.size(); ++i) out.list[i].weight = 1.0 / static_cast<double>(i + 1);
  if (unfinished > 0) {
    h.lead_en += " " + counted(unfinished, "call was", "calls were") +
                 " made by all members and through for nobody when the dumps were taken.";
    h.lead_zh += "另有 " + grouped(unfinished) + " 次调用所有成员均已发起，但在转储时无人完成。";
  }
  if (!out.list.empty()) {
    h.title_en = out.list.front().title_en + ".";
    h.title_zh = out.list.front().title_zh + "。";
    if (!report.roots.empty() && report.cycle.empty()) {
      h.lead_en += " " + capital(ranks_text(report.roots)) + (report.roots.size() == 1 ? " is" : " are") +
                   " waited for and wait" + (report.roots.size() == 1 ? "s" : "") + " in no call: look there first.";
      h.lead_zh += "被等待而自身不在任何调用中等待的是 " + ranks_zh(report.roots) + "：请先查看。";
    }
    return out;
  }
  h.title_en = unfinished > 0
                   ? "All calls fit each other, and " + counted(unfinished, "is", "are") + " still under way."
                   : "All calls fit each other and are through: nothing hangs.";
  h.title_zh = unfinished > 0 ? "所有调用相互匹配，有 " + grouped(unfinished) + " 次仍在进行。"
                              : "所有调用相互匹配且均已完成：没有挂起。";
  Finding none;
  none.id = "none";
  none.title_en = "Nothing stands out";
  none.title_zh = "没有突出的问题";
  none.detail_en = "No member is missing from a collective that others wait in, and operations, sizes and types agree.";
  none.detail_zh = "没有成员缺席他人等待的集合通信，操作、大小与类型均一致。";
  out.list.push_back(std::move(none));
  return out;
}

}  // namespace stageline
