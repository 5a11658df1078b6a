#include "pipeline/clocks/clock_graph.h"

namespace stageline::align {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxSteps = 500;  // limit on the steps of conjugate gradients

// The edges that leave each node, all in one array.
class OutEdges {
 public:
  OutEdges(size_t nodes, const std::vector<Limit>& limits, bool reversed) : begin_(nodes + 1), order_(limits.size()) {
    const auto from = [&](const Limit& l) { return static_cast<size_t>(reversed ? l.to : l.from); };
    for (const Limit& l : limits) ++begin_[from(l) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (uint32_t e = 0; e < limits.size(); ++e) order_[next[from(limits[e])]++] = e;
  }
  const int32_t* begin(size_t node) const { return order_.data() + begin_[node]; }
  const int32_t* end(size_t node) const { return order_.data() + begin_[node + 1]; }

 private:
  std::vector<size_t> begin_;
  std::vector<int32_t> order_;
};

size_t behind(const Limit& limit, bool reversed) { return reversed ? limit.to : limit.from; }

// Returns the cycles among the limits by which nodes were last reached, no two with a node in common. O(nodes).
std::vector<std::vector<int32_t>> cycles_of(const std::vector<Limit>& limits, bool reversed,
                                            const std::vector<int32_t>& came_by) {
  std::vector<std::vector<int32_t>> cycles;
  std::vector<size_t> walk(came_by.size(), SIZE_MAX);  // the walk in which each node was seen first
  for (size_t start = 0; start < came_by.size(); ++start) {
    size_t node = start;
    for (; walk[node] == SIZE_MAX && came_by[node] >= 0; node = behind(limits[came_by[node]], reversed))
      walk[node] = start;
    if (walk[node] != start || came_by[node] < 0) continue;
    std::vector<int32_t> cycle;
    const size_t first = node;
    do {
      cycle.push_back(came_by[node]);
      node = behind(limits[came_by[node]], reversed);
    } while (node != first);
    std::ranges::reverse(cycle);
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

// Bellman–Ford with a queue. `distance` holds the starting values, infinite for nodes not reached. Returns negative
// cycles, or an empty list when there is none. They are looked for after every `nodes` changes, by following the limits
// back to the nodes that reached a node (Cherkassky and Goldberg 1999). So a short cycle costs a few sweeps instead of
// one per node. kSlack keeps rounding errors from looking like contradictions.
std::vector<std::vector<int32_t>> relax(size_t nodes, const std::vector<Limit>& limits, bool reversed,
                                        std::vector<double>& distance) {
  constexpr double kSlack = 1e-3;  // in the unit of the values: a thousandth of a nanosecond, or of a part per billion
  const OutEdges out(nodes, limits, reversed);
  std::vector<int32_t> came_by(nodes, -1), queue, next;
  std::vector<char> queued(nodes, 0);
  for (size_t i = 0; i < nodes; ++i)
    if (distance[i] < kInfinity) queue.push_back(static_cast<int32_t>(i));
  size_t changes = 0;
  for (size_t round = 0; !queue.empty(); ++round) {
    next.clear();
    for (const int32_t node : queue) queued[node] = 0;
    for (const int32_t node : queue) {
      for (const int32_t* e = out.begin(node); e != out.end(node); ++e) {
        const Limit& limit = limits[*e];
        const int32_t to = reversed ? limit.from : limit.to;
        const double via = distance[node] + limit.max;
        if (!(via < distance[to] - kSlack)) continue;
        distance[to] = via;
        came_by[to] = *e;
        ++changes;
        if (!queued[to]) next.push_back(to);
        queued[to] = 1;
      }
    }
    if (changes >= nodes || round > nodes) {
      changes = 0;
      if (auto cycles = cycles_of(limits, reversed, came_by); !cycles.empty()) return cycles;
    }
    queue.swap(next);
  }
  return {};
}

// Sets of nodes, each named by its lowest.
class JoinedNodes {
 public:
  explicit JoinedNodes(size_t nodes) : next_(nodes) { std::iota(next_.begin(), next_.end(), 0); }
  int32_t lowest(int32_t node) {
    while (next_[node] != node) node = next_[node] = next_[next_[node]];
    return node;
  }
  // Returns false when both are in one set already.
  bool join(int32_t a, int32_t b) {
    a = lowest(a), b = lowest(b);
    next_[std::max(a, b)] = std::min(a, b);
    return a != b;
  }

 private:
  std::vector<int32_t> next_;  // a lower node of the same set, or the node itself
};

// Returns the solution along a tree of the strongest guesses. Without cycles it is the answer already.
std::vector<double> along_tree(std::vector<Guess> guesses, const std::vector<int32_t>& component) {
  const size_t nodes = component.size();
  sort_stably(guesses, std::greater(), &Guess::weight);
  std::vector<std::vector<std::pair<int32_t, double>>> tree(nodes);
  JoinedNodes joined(nodes);
  for (const Guess& g : guesses) {
    if (!joined.join(g.from, g.to)) continue;
    tree[g.from].emplace_back(g.to, g.value);
    tree[g.to].emplace_back(g.from, -g.value);
  }
  std::vector<double> x(nodes, 0);
  std::vector<int32_t> stack;
  std::vector<char> seen(nodes, 0);
  for (uint32_t i = 0; i < nodes; ++i) {
    if (component[i] != static_cast<int32_t>(i)) continue;
    stack.push_back(i);
    seen[i] = 1;
    while (!stack.empty()) {
      const int32_t node = stack.back();
      stack.pop_back();
      for (const auto& [to, value] : tree[node]) {
        if (seen[to]) continue;
        seen[to] = 1;
        x[to] = x[node] + value;
        stack.push_back(to);
      }
    }
  }
  return x;
}

}  // namespace

std::vector<int32_t> components(size_t nodes, const std::vector<Guess>& guesses) {
  JoinedNodes joined(nodes);
  for (const Guess& g : guesses) joined.join(g.from, g.to);
  std::vector<int32_t> of(nodes);
  for (size_t i = 0; i < nodes; ++i) of[i] = joined.lowest(static_cast<int32_t>(i));
  return of;
}

std::vector<double> least_squares(size_t nodes, const std::vector<Guess>& guesses, double prior_weight) {
  const std::vector<int32_t> component = components(nodes, guesses);
  std::vector<double> x = along_tree(guesses, component);
  // Conjugate gradients, preconditioned with the diagonal of the Laplacian, lead from there to the answer.
  std::vector<double> diagonal(nodes, prior_weight), residual(nodes, 0);
  const auto fixed = [&](size_t i) { return component[i] == static_cast<int32_t>(i); };
  // Multiplies the Laplacian with v, with the fixed nodes held at 0.
  std::vector<double> product(nodes);
  const auto multiply = [&](const std::vector<double>& v) {
    for (size_t i = 0; i < nodes; ++i) product[i] = prior_weight * v[i];
    for (const Guess& g : guesses) {
      const size_t i = g.from, j = g.to;
      const double flow = g.weight * (v[j] - v[i]);
      product[j] += flow;
      product[i] -= flow;
    }
    for (size_t i = 0; i < nodes; ++i)
      if (fixed(i)) product[i] = 0;
  };
  for (const Guess& g : guesses) {
    diagonal[g.from] += g.weight;
    diagonal[g.to] += g.weight;
    residual[g.to] += g.weight * g.value;
    residual[g.from] -= g.weight * g.value;
  }
  multiply(x);
  for (size_t i = 0; i < nodes; ++i) residual[i] = fixed(i) ? 0 : residual[i] - product[i];
  std::vector<double> z(nodes), direction(nodes);
  const auto precondition = [&] {
    double sum = 0;
    for (size_t i = 0; i < nodes; ++i) {
      z[i] = diagonal[i] > 0 ? residual[i] / diagonal[i] : 0;
      sum += z[i] * residual[i];
    }
    return sum;
  };
  double energy = precondition();
  const double enough = energy * 1e-24;
  direction = z;
  for (int step = 0; step < kMaxSteps && energy > enough && energy > 0; ++step) {
    multiply(direction);
    double curvature = 0;
    for (size_t i = 0; i < nodes; ++i) curvature += direction[i] * product[i];
    if (!(curvature > 0)) break;
    const double length = energy / curvature;
    for (size_t i = 0; i < nodes; ++i) {
      x[i] += length * direction[i];
      residual[i] -= length * product[i];
    }
    const double before = energy;
    energy = precondition();
    for (size_t i = 0; i < nodes; ++i) direction[i] = z[i] + energy / before * direction[i];
  }
  return x;
}

bool move_inside(std::vector<double>& x, const std::vector<Limit>& limits) {
  std::vector<double> below = x;
  if (!relax(x.size(), limits, false, below).empty()) return false;
  // The lowest feasible point above x is found in the same way on the reversed graph, with all signs turned.
  std::vector<double> above(x.size());
  for (size_t i = 0; i < x.size(); ++i) above[i] = -x[i];
  if (!relax(x.size(), limits, true, above).empty()) return false;
  for (size_t i = 0; i < x.size(); ++i) x[i] = (below[i] - above[i]) / 2;
  return true;
}

std::vector<std::vector<int32_t>> negative_cycles(size_t nodes, const std::vector<Limit>& limits) {
  std::vector<double> distance(nodes, 0);  // starts everywhere at once, so that cycles far apart are found together
  return relax(nodes, limits, false, distance);
}

Intervals intervals(size_t nodes, const std::vector<Limit>& limits, const std::vector<int32_t>& component) {
  Intervals out;
  for (const bool reversed : {false, true}) {
    std::vector<double> distance(nodes, kInfinity);
    for (size_t i = 0; i < nodes; ++i)
      if (component[i] == static_cast<int32_t>(i)) distance[i] = 0;
    if (!relax(nodes, limits, reversed, distance).empty())
      distance.assign(nodes, kInfinity);  // the caller broke the contract: there is a negative cycle
    (reversed ? out.low : out.high) = std::move(distance);
  }
  for (double& low : out.low) low = -low;
  return out;
}

}  // namespace stageline::align
