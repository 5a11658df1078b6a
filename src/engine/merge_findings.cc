#include "engine/merge_findings.h"

#include <algorithm>
#include <string>

#include "base/number.h"

namespace stageline {
namespace {

double part_share(const Headline& headline, std::string_view prefix) {
  double share = 0;
  for (const SpanPart& part : headline.parts)
    if (part.id.starts_with(prefix)) share += part.share;
  return share;
}

// What ranks wait for within the pipeline, whatever the cause.
double waiting_share(const Headline& headline) {
  double share = 0;
  for (const char* cause : {"bubble", "imbalance", "jitter", "message", "rest"}) share += part_share(headline, cause);
  return share;
}

Finding* find(std::vector<Finding>& list, std::string_view id) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const Finding& x) { return x.id == id; });
  return it == list.end() ? nullptr : &*it;
}

bool takes(const std::vector<Finding>& list, std::string_view id) {
  return std::any_of(list.begin(), list.end(), [&](const Finding& x) { return x.id == id; });
}

// A rank that waits for a message has a device that stands idle, or one that runs a receive kernel until it is there.
// Where the pipeline's waiting is at least half of both, that is what they are.
void explain_by_bubble(Findings& pipeline, Findings& devices) {
  Finding* bubble = find(pipeline.list, "bubble");
  const double idle = part_share(devices.headline, "idle"), exposed = part_share(devices.headline, "comm");
  if (!bubble || waiting_share(pipeline.headline) < 0.5 * (idle + exposed)) return;
  const bool says_idle = takes(devices.list, "device.idle"), says_comm = takes(devices.list, "comm.exposed");
  if (!says_idle && !says_comm) return;
  std::erase_if(devices.list, [](const Finding& x) { return x.id == "device.idle" || x.id == "comm.exposed"; });
  std::string en, zh;
  if (says_idle) {
    en = "stand idle " + percent(idle);
    zh = "空闲 " + percent(idle);
  }
  if (says_comm) {
    en += (en.empty() ? "" : " and ") + ("communicate with nothing computed over it " + percent(exposed));
    zh += (zh.empty() ? "" : "、") + ("未被掩盖地通信 " + percent(exposed));
  }
  bubble->detail_en += " The devices " + en + " of their time: mostly this waiting" +
                       (says_comm ? ", for a receive kernel runs until its message is there." : ".");
  bubble->detail_zh +=
      "设备" + zh + "（占其时间），主要就是这段等待" + (says_comm ? "：接收核函数要运行到消息到达为止。" : "。");
}

}  // namespace

Findings merge_findings(Findings pipeline, Findings devices) {
  explain_by_bubble(pipeline, devices);
  // Stages have different work, so ranks are compared within their stage, which is what the pipeline's findings do.
  const auto said = [&](const Finding& x) {
    return x.id == "none" || x.id == "rank.late" || x.id == "rank.slow" || x.id == "step.outlier" ||
           takes(pipeline.list, x.id);
  };
  std::erase_if(devices.list, said);
  if (!devices.list.empty()) std::erase_if(pipeline.list, [](const Finding& x) { return x.id == "none"; });
  for (Finding& finding : devices.list) pipeline.list.push_back(std::move(finding));
  std::stable_sort(pipeline.list.begin(), pipeline.list.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  std::stable_partition(pipeline.list.begin(), pipeline.list.end(),
                        [](const Finding& x) { return x.id == "stage.slow" || x.id == "rank.slow"; });
  return pipeline;
}

}  // namespace stageline
