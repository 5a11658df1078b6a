// Sends that are late by their own rank's host, and messages that show little of their link. Part of causes.
//
//   stage 1  ▐▐ F4 ▐▐······ host ······│ send ├──transfer──▶│
//   stage 2                                                 ▐▐ F4 ▐▐
//
// The rank's next work is late by the same time, and that has the same cause.
#pragma once

#include "diagnosis/causes/suspect.h"

namespace stageline {

struct LateSend {
  uint32_t op = 0;  // the message
  size_t step = 0;  // of the graph
  int32_t part = kUnknown;
  uint32_t cell = 0;    // whose result it carries
  double ns = 0;        // beyond the usual time from a result to its send
  int64_t sent_ns = 0;  // on the clock of its rank
};

struct LateSends {
  explicit LateSends(const CauseScene& scene);

  std::vector<LateSend> list;       // in steps that count
  std::map<int32_t, int64_t> sent;  // by part: its messages whose send was recorded
  double usual_ns = 0;              // the median time from a result to its send
  // The time of a message without the part that its send was late.
  double transfer_ns(const StepGraph& graph, uint32_t op) const { return graph.dur_ns[op] - late_ns(op); }
  // In all steps.
  double late_ns(uint32_t op) const { return value_at(late_, op); }
  // Returns true when most of the message's transfer passed before its receive was posted, or while its host computed:
  // the part that was recorded says little.
  bool hidden(uint32_t op) const { return hidden_.contains(op); }
  // The part of a compute cell's delay in which its rank's host was late with a send as well.
  double held_ns(uint32_t op) const { return value_at(held_, op); }

 private:
  std::map<uint32_t, double> late_, held_;
  std::set<uint32_t> hidden_;
};

}  // namespace stageline
