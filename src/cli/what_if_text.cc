#include "cli/what_if_text.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"

namespace stageline {
namespace {

constexpr int kIndent = 4, kLabel = 9;  // columns

// "−18.5 %": a saving as the change of the step.
std::string change(double saving_share) {
  return (saving_share > 0 ? "−" : saving_share < 0 ? "+" : "") + percent(std::abs(saving_share));
}

// `lead`, then `text` wrapped beside it.
std::string beside(const std::string& lead, int columns, const std::string& text, int width) {
  const std::string lines = wrapped(text, width, columns);
  return lead + std::string(static_cast<size_t>(std::max(0, columns - display_width(lead))), ' ') +
         lines.substr(static_cast<size_t>(columns));
}

// A step of another size does other work: its price is that of a micro-batch.
std::string price_text(const Fix& fix, bool zh) {
  const bool other_size = fix.changes.micro_batches > 0;
  const std::string price = change(fix.price.share());
  return zh ? (other_size ? "每个微批 " : "每步 ") + price : price + (other_size ? " per micro-batch" : " a step");
}

// recognition_text() of a recognised schedule, in Chinese.
std::string recognition_zh(const Recognition& r) {
  const ScheduleCandidate& best = r.best();
  std::string text = best.name + "，" + std::to_string(best.sizes.stages) + " 级，" +
                     std::to_string(best.sizes.micro_batches) + " 个微批";
  if (best.sizes.chunks > 1)
    text += best.layout == ChunkLayout::kBidirectional ? "，2 个方向"
                                                       : "，每 rank " + std::to_string(best.sizes.chunks) + " 个分块";
  const double equal = static_cast<double>(best.equal_lists) / static_cast<double>(std::max<int64_t>(1, r.lists));
  return text + "，" + fixed(equal * 100, equal == 1 ? 0 : 1) + "\u202f% 的工作列表吻合";
}

// "2.21 s a step, 32 steps; replayed to 0.00 %, other orders to +0.3 %".
std::string base_text(const WhatIf& model, bool zh) {
  const ModelError& error = model.error();
  int64_t steps = 0;
  for (const uint8_t counts : model.counts()) steps += counts;
  const auto off = [&](double ns) { return fixed((ns / error.recorded_ns - 1) * 100, 2) + "\u202f%"; };
  const bool known = error.recorded_ns > 0;
  std::string text =
      zh ? std::to_string(steps) + " 步，均值 " + human_duration(error.recorded_ns)
         : std::to_string(steps) + (steps == 1 ? " step of " : " steps of ") + human_duration(error.recorded_ns);
  const Recognition& recognition = model.order().recognition();
  if (model.order().known())
    text = (zh ? recognition_zh(recognition) : recognition_text(recognition)) + (zh ? "；" : "; ") + text;
  if (known) text += (zh ? "；重放误差 " : "; model error ") + off(error.graph_ns);
  if (known && !std::isnan(error.order_ns)) text += (zh ? "，其他调度 " : ", of other orders ") + off(error.order_ns);
  return text;
}

// "1.  balance the stages …                  −18.1 % a step": the price at the right edge of the last line.
std::string title_line(const std::string& number, const std::string& name, const std::string& price, int width) {
  std::string text = beside(number, kIndent, name, std::max(width - display_width(price) - 2, kIndent + 20));
  text.pop_back();
  const size_t line = text.rfind('\n');
  const int used = display_width(line == std::string::npos ? text : text.substr(line + 1));
  return text + std::string(static_cast<size_t>(std::max(2, width - used - display_width(price))), ' ') + price + "\n";
}

}  // namespace

std::string what_if_text(const WhatIf& model, const FixList& list, const Terminal& terminal) {
  const bool zh = terminal.lang == "zh";
  const int width = std::clamp(terminal.width, 60, 100);
  const auto in = [&](const FixText& text) { return zh ? text.zh : text.en; };
  const std::string margin(kIndent, ' ');
  std::string out = wrapped(in(list.sentence), width, 0) + wrapped(base_text(model, zh), width, 0);
  int place = 0;
  bool bounds = false;
  for (const Fix& fix : list.fixes) {
    if (fix.bound && !bounds) {
      bounds = true;
      out += "\n" + wrapped(zh ? "上界：这些地方损失了多少；没有哪个开关能全部赢回来。"
                               : "Bounds: what is lost there, and no switch that wins all of it back.",
                            width, 0);
    }
    const std::string number = fix.id == "own" ? "?" : fix.bound ? "≤" : std::to_string(++place) + ".";
    out += "\n" + title_line(number, in(fix.name), price_text(fix, zh), width);
    std::string step = human_duration(fix.price.recorded_ns) + " → " + human_duration(fix.price.step_ns);
    if (!std::isnan(fix.price.error_ns)) step += " ± " + human_duration(fix.price.error_ns);
    if (fix.changes.micro_batches > 0) {
      const int32_t m = model.order().sizes().micro_batches;
      step += zh ? "，均按 " + std::to_string(m) + " 个微批计"
                 : ", both for " + std::to_string(m) + (m == 1 ? " micro-batch" : " micro-batches");
    }
    if (fix.changes.changes_order() && !std::isnan(fix.price.held))
      step += (zh ? "；激活 " : "; activations ") + fixed(fix.price.held, 2) + (zh ? "，现在 " : ", now ") +
              fixed(model.order().present().most_held(), 2);
    const auto line = [&](const char* en, const char* label_zh, const std::string& text) {
      out += beside(margin + (zh ? label_zh : en), kIndent + kLabel, text, width);
    };
    line("step", "每步", step);
    line("assumes", "假定", in(fix.assumes));
    line("how", "做法", in(fix.how));
  }
  std::string rest;
  if (list.no_gain > 0)
    rest = zh ? std::to_string(list.no_gain) + " 项改动没有收益，或收益小于其不确定度。"
              : std::to_string(list.no_gain) + (list.no_gain == 1 ? " other fix gains" : " other fixes gain") +
                    " nothing, or less than its own uncertainty.";
  if (list.over_memory > 0) {
    if (!rest.empty() && !zh) rest += ' ';
    rest += zh ? std::to_string(list.over_memory) + " 种执行次序需要更多激活显存：--more-memory 也为它们估价。"
               : std::to_string(list.over_memory) + (list.over_memory == 1 ? " order holds" : " orders hold") +
                     " more activations than now: --more-memory prices them too.";
  }
  if (!rest.empty()) out += "\n" + wrapped(rest, width, 0);
  return out;
}

}  // namespace stageline
