// The own work of ranks that meet inside cells, compared with their peers': lasting and moving excess, and pauses.
// Part of causes.
#pragma once

#include "pipeline/replay/peer_cells.h"

namespace stageline {

class PeerWork {
 public:
  static constexpr double kAgree = 0.5;  // minimum correlation of forwards with backwards where rows decide

  // `counts` says for each step of the graph whether it counts. The graph must outlive this object.
  PeerWork(const Trace& trace, const StepGraph& graph, const std::vector<bool>& counts);

  const PeerCells& cells() const { return cells_; }
  const StepGraph& graph() const { return graph_; }
  bool any() const { return cells_.any(); }
  // For each operation its work without exchanges, pauses, uneven experts and longer sequences; empty: not any().
  std::vector<double> usual_work() const;

  // Median of a rank's work to the median of its peers', over cells. A class is 0 outside of experts, else 1 + chunk ·
  // layers + layer.
  struct Ratio {
    double value = 1, error = 0;  // its standard error, by the scatter of single cells
    bool sure() const;            // above 1 by more than noise
  };
  using Key = std::pair<int32_t, int32_t>;  // part, class
  const std::map<Key, Ratio>& ratios() const { return ratios_; }
  double device(int32_t part) const;  // how much slower a rank computes anything; 1 at least

  // Work that is far longer than usual in one direction of a micro-batch alone.
  struct Pauses {
    std::vector<size_t> at;  // indices of PeerCells::own_ns
    std::map<int32_t, double> of_part;
    double ns = 0;
  };
  const Pauses& pauses() const { return pauses_; }

  // Ranks whose work around the experts is longer, but not that of their experts: by part the ratio.
  const std::map<int32_t, Ratio>& sources() const { return sources_; }

  struct Experts {
    Ratio hottest = {};
    int32_t part = kUnknown, layer = kUnknown;  // of the hottest
    double lasting = 0;                         // share of the unevenness that stays with the same ranks and layers
    double correlation = 0;                     // of forwards with backwards of a micro-batch; 0: unknown
  };
  const Experts& experts() const { return experts_; }

  // Factors of PeerCells::own_ns that even experts out, and those that take pauses away.
  const std::vector<double>& even() const { return even_; }
  const std::vector<double>& unpaused() const { return unpaused_; }

 private:
  int32_t class_of(const PeerCell& cell, size_t stretch) const;
  template <class Body> void each_group(const Body& body) const;
  void find_pauses();
  void find_ratios();
  void find_devices();
  void even_experts();
  void keep_noise();
  double clean_ns(size_t at) const { return cells_.own_ns[at] * unpaused_[at]; }

  const Trace& trace_;
  const StepGraph& graph_;
  const std::vector<bool>& counts_;
  const PeerCells cells_;
  std::map<Key, Ratio> ratios_;
  std::map<int32_t, double> devices_;  // by part: how much slower it computes anything
  std::map<int32_t, Ratio> sources_;
  Pauses pauses_;
  Experts experts_;
  std::vector<double> even_, unpaused_, relative_;  // relative_: of experts, to the mean of the peers
};

}  // namespace stageline
