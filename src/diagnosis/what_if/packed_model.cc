#include "diagnosis/what_if/packed_model.h"

#include "base/pack.h"

namespace stageline {
// Writers get every argument as const, readers do not. Not packed are the members that only the making of a model
// needs: its error, the steps that were left out, the recorded ends.
class PackedModel {
 public:
  template <class Pack, class Model>
  static void asked(Pack& p, Model& model, std::conditional_t<Pack::kReads, AskedModel, const AskedModel>& with) {
    what_if(p, model);
    p.list(with.fixes, [&](auto& fix) { changes(p, fix); });
    p.whole(with.zero_ns);
    p.column(with.dp, with.stage);
  }

  // Computes what is not stored; needs the whole model.
  static void measure(WhatIf& model) {
    model.measure_others();
    model.measure_usual();
  }

 private:
  template <class Pack, class Model> static void what_if(Pack& p, Model& m) {
    if constexpr (Pack::kReads) {
      auto made = std::make_shared<StepGraph>();
      graph(p, *made);
      m.graph_ = std::move(made);
    } else {
      graph(p, *m.graph_);
    }
    order(p, m.order_);
    costs(p, m.layers_.constant_ns);
    p.whole(m.whole_);
    p.whole(m.hosts_alone_);
    p.whole(m.one_host_);
    p.column(m.ranks_, m.counts_);
    p.real(m.gap_ns_);
    p.column(m.launch_ns_);
    links(p, m);
    p.column(m.fair_ns_, m.graph_step_ns_, m.order_step_ns_);
  }

  // An operation's link factor is stored as the list of different factors and, for each operation, which of them it
  // has.
  template <class Pack, class Model> static void links(Pack& p, Model& m) {
    std::vector<float> different;
    std::vector<uint32_t> which;
    if constexpr (!Pack::kReads) {
      std::vector<float> of_op;
      if (!m.place_of_.empty())
        for (size_t op = 0; op < m.graph_->size(); ++op)
          of_op.push_back(is_message(m.graph_->kind[op]) ? m.link_factor_[m.place_of_[op]] : 1.0F);
      different = of_op;
      sort_unique(different);
      for (const float factor : of_op)
        which.push_back(
            static_cast<uint32_t>(std::lower_bound(different.begin(), different.end(), factor) - different.begin()));
    }
    p.column(different, which);
    if constexpr (Pack::kReads) {
      for (const uint32_t at : which) m.place_of_.push_back(at < different.size() ? at : 0);
      m.link_factor_ = std::move(different);
    }
  }

  template <class Pack, class Graph> static void graph(Pack& p, Graph& g) {
    p.whole(g.source, g.messages_recorded);
    p.list(g.types, [&](auto& type) {
      p.text(type.name);
      p.whole(type.kind, type.communicates, type.overlapped);
    });
    p.list(g.steps,
           [&](auto& step) { p.whole(step.begin, step.end, step.step, step.start_ns, step.span_ns, step.counts); });
    p.list(g.groups, [&](auto& group) { p.whole(group.begin, group.end); });
    p.whole(g.stage_count, g.dp_count);
    p.column(g.type, g.kind, g.part, g.chunk, g.micro_batch, g.stage_of, g.dp_of);
    cells(p, g);
    p.column(g.group_of, g.closes_of, g.dur_ns, g.delay_ns, g.wait_begin);
    // Operations wait for others shortly before them, so distances are short numbers.
    std::vector<uint32_t> back;
    if constexpr (!Pack::kReads)
      for (uint32_t op = 0; op < g.size(); ++op)
        for (const uint32_t on : g.waits(op)) back.push_back(op - on);
    p.column(back);
    if constexpr (Pack::kReads) {
      if (g.wait_begin.size() != g.size() + 1 || g.wait_begin.back() != back.size()) return p.break_off();
      for (uint32_t op = 0; op < g.size(); ++op)
        for (uint32_t w = g.wait_begin[op]; w < std::min<size_t>(g.wait_begin[op + 1], back.size()); ++w)
          g.wait_on.push_back(op - back[w]);
    }
    starts(p, g);
  }

  // Encodes, for each operation, the distance of its cell from the previous cell of the same part; 0 means no cell.
  // Non-negative distances are stored plus one, so that 0 stays free. Nearly all values are 1 or 2.
  template <class Pack, class Graph> static void cells(Pack& p, Graph& g) {
    std::vector<int64_t> distance, last(g.stage_of.size());
    const auto before = [&](size_t op) -> int64_t& { return last[g.part[op]]; };
    if constexpr (!Pack::kReads)
      for (size_t op = 0; op < g.size(); ++op) {
        const bool has = g.cell[op] != kNoCell;
        const int64_t by = has ? int64_t{g.cell[op]} - before(op) : 0;
        distance.push_back(has && by >= 0 ? by + 1 : by);
        if (has) before(op) = g.cell[op];
      }
    p.column(distance);
    if constexpr (Pack::kReads) {
      g.cell.assign(distance.size(), kNoCell);
      for (size_t op = 0; op < std::min(distance.size(), g.part.size()); ++op) {
        if (distance[op] == 0 || static_cast<size_t>(g.part[op]) >= last.size()) continue;
        before(op) += distance[op] > 0 ? distance[op] - 1 : distance[op];
        g.cell[op] = static_cast<uint32_t>(before(op));
      }
    }
  }

  // The model predicts each start: end of its last dependency plus its delay (step_graph.h). Only the difference from
  // the recorded start is stored. It is 0 unless timestamps contradict each other.
  template <class Pack, class Graph> static void starts(Pack& p, Graph& g) {
    std::vector<int64_t> off;
    if constexpr (!Pack::kReads) {
      follow(g, [&](size_t op, int64_t expected) {
        off.push_back(g.start_ns[op] - expected);
        return g.start_ns[op];
      });
    }
    p.column(off);
    if constexpr (Pack::kReads) {
      const size_t count = g.size();
      if (off.size() != count || g.dur_ns.size() != count || g.delay_ns.size() != count ||
          g.wait_begin.size() != count + 1 || g.wait_begin.back() != g.wait_on.size())
        return p.break_off();
      g.start_ns.resize(count);
      follow(g, [&](size_t op, int64_t expected) { return g.start_ns[op] = expected + off[op]; });
    }
  }
  // Calls `start(operation, when it is expected)`, which returns when it started, in the order of operations.
  template <class Graph, class Start> static void follow(const Graph& g, const Start& start) {
    std::vector<double> end(g.size());
    double latest_start = 0;  // of the group that the operation is in
    for (uint32_t op = 0; op < g.size(); ++op) {
      double ready = max_over<double>(g.waits(op), [&](const uint32_t on) { return end[on]; });
      ready += g.delay_ns[op];
      const int64_t expected = std::abs(ready) < kMaxWhole ? std::llround(ready) : 0;
      const auto began = static_cast<double>(start(op, expected));
      end[op] = began + g.dur_ns[op];
      const uint32_t group = g.group(op);
      if (group == kNoGroup || group >= g.groups.size()) continue;
      const GraphGroup& all = g.groups[group];
      latest_start = op == all.begin ? began : std::max(latest_start, began);
      if (op + 1 == all.end)  // known now: when its members have all begun
        for (uint32_t member = all.begin; member <= op; ++member) end[member] = latest_start + g.dur_ns[member];
    }
  }

  // Here and in changes() all members are taken apart, so that a new one does not compile until it is packed.
  template <class Pack, class Sizes> static void sizes(Pack& p, Sizes& s) {
    auto& [stages, micro_batches, chunks, group, dw_detach, plan] = s;
    auto& [forward, input, weight, latency] = plan;
    p.whole(stages, micro_batches, chunks, group, dw_detach, forward, input, weight, latency);
  }

  template <class Pack, class Costs> static void costs(Pack& p, Costs& by_stage) {
    p.list(by_stage, [&](auto& stage) {
      for (auto& ns : stage) p.real(ns);
    });
  }

  template <class Pack, class Order> static void order(Pack& p, Order& o) {
    p.text(o.why_not_.en);
    p.text(o.why_not_.zh);
    if constexpr (Pack::kReads) {
      o.recognition_.recognised = o.why_not_.empty();
      if (o.recognition_.recognised) o.recognition_.candidates.resize(1);
    }
    if (!o.known()) return;
    auto& best = o.recognition_.candidates.front();
    p.text(best.name);
    sizes(p, best.sizes);
    p.whole(best.layout);
    sizes(p, o.sizes_);
    p.whole(o.layout_);
    p.text(o.present_.schedule.name);
    sizes(p, o.present_.schedule.sizes);
    p.whole(o.present_.schedule.layout);
    p.column(o.present_.held);
    p.list(o.pipelines_, [&](auto& pipeline) {
      p.whole(pipeline.step, pipeline.dp, pipeline.slots);
      p.real(pipeline.head_ns);
    });
    slots(p, o.slots_);
    p.column(o.tail_ns_);
    costs(p, o.stages_.cost_ns);
    p.column(o.stages_.owner);
    p.real(o.weight_share_);
    p.real(o.overlap_ratio_);
    p.whole(o.weight_measured_);
  }

  template <class Pack, class Slots> static void slots(Pack& p, Slots& list) {
    for (size_t d = 0; d < kDirections; ++d) {
      std::vector<uint32_t> ops;
      std::vector<uint8_t> fused;
      if constexpr (!Pack::kReads)
        for (const auto& slot : list) {
          ops.push_back(slot.op[d]);
          fused.push_back(d < 2 && slot.fused_with[d] ? 1 : 0);
        }
      p.column(ops, fused);
      if constexpr (Pack::kReads) {
        list.resize(ops.size());
        for (size_t s = 0; s < std::min(ops.size(), fused.size()); ++s) {
          list[s].op[d] = ops[s];
          if (d < 2) list[s].fused_with[d] = fused[s] != 0;
        }
      }
    }
  }

  template <class Pack, class T> static void maybe(Pack& p, T& value) {
    bool there = value.has_value();
    p.whole(there);
    if constexpr (Pack::kReads)
      if (there) value.emplace();
    if (!there) return;
    if constexpr (std::is_floating_point_v<typename std::remove_cvref_t<T>::value_type>) p.real(*value);
    else p.whole(*value);
  }

  template <class Pack, class Scale> static void scale(Pack& p, Scale& s) {
    auto& [stage, rank, dp, chunk, micro_batch, step, kind, by, set_ns] = s;
    p.whole(stage, rank, dp, chunk, micro_batch, step);
    maybe(p, kind);
    p.real(by);
    maybe(p, set_ns);
  }

  template <class Pack, class C> static void changes(Pack& p, C& c) {
    auto& [scales, replaced, stage_factor, fair_stage, fair_cells, fair_links, no_delay, latency_ns, schedule, chunks,
           group, micro_batches, more_in_flight] = c;
    p.list(scales, [&](auto& cells) { scale(p, cells); });
    p.list(replaced, [&](auto& worker) { p.whole(worker.first, worker.second); });
    costs(p, stage_factor);
    p.whole(fair_stage, fair_cells, fair_links, no_delay);
    maybe(p, latency_ns);
    p.text(schedule);
    p.whole(chunks, group, micro_batches);
    p.list(more_in_flight, [&](auto& extra) { p.whole(extra); });
  }
};

std::string packed_model(const AskedModel& asked) {
  PackWriter writer;
  PackedModel::asked(writer, *asked.model, asked);
  return writer.take();
}

std::optional<RestoredModel> restored_model(std::string_view bytes) {
  PackReader reader(bytes);
  std::optional<RestoredModel> restored(std::in_place);
  PackedModel::asked(reader, restored->model, restored->asked);
  if (!reader.all_was_read()) return std::nullopt;
  PackedModel::measure(restored->model);
  return restored;
}

}  // namespace stageline
