#include "profile/flight_match.h"

namespace stageline {
namespace {

struct Call {
  int32_t part;
  const FlightCall* call;
};

// Say in which sides of a call all members must agree.
bool compares_inputs(std::string_view op) {
  return !mentions(op, "all_to_all") && !mentions(op, "alltoall") && op != "scatter";
}
bool compares_outputs(std::string_view op) {
  return !mentions(op, "all_to_all") && !mentions(op, "alltoall") && op != "gather";
}
bool compares_dtypes(std::string_view op) { return op != "scatter" && op != "gather" && op != "broadcast"; }

std::string list_text(const std::vector<int32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

class Matcher {
 public:
  explicit Matcher(const Trace& trace) : trace_(trace) {
    for (uint32_t p = 0; p < trace.parts.size(); ++p) part_of_[trace.parts[p].rank] = p;
  }

  FlightReport match() {
    for (uint32_t g = 0; g < trace_.flight_groups.size(); ++g) match_group(g);
    find_waits();
    find_roots();
    order_problems();
    return std::move(report_);
  }

 private:
  bool is_through(const FlightCall& call) const {
    return call.state == FlightState::kCompleted && !gave_up_.contains(&call);
  }

  const Part& part(int32_t p) const { return trace_.parts[p]; }
  int32_t rank(int32_t p) const { return part(p).rank; }
  std::string_view text(StringId id) const { return trace_.names.text(id); }
  // Returns true when a rank's ring has lost its first calls. Counting starts at 0, or at 1 with some backends.
  bool began_late(int32_t p) const {
    int64_t first = min_over<int64_t>(part(p).flight_calls, &FlightCall::record_id);
    return first != INT64_MAX && first > 1;
  }
  int64_t start_of(const Call& c) const { return part(c.part).slices.start_ns[c.call->slice]; }

  void match_group(int32_t g) {
    const FlightGroup& group = trace_.flight_groups[g];
    FlightGroupSum sum{.group = g};
    std::vector<int32_t> members;       // indices of parts
    std::vector<int32_t> without_dump;  // ranks
    for (const int32_t r : group.ranks)
      if (const auto at = part_of_.find(r); at != part_of_.end()) members.push_back(at->second);
      else without_dump.push_back(r);
    std::map<int64_t, std::vector<Call>> by_sequence;
    std::map<std::pair<int32_t, int32_t>, std::pair<std::vector<Call>, std::vector<Call>>> messages;  // key: (src, dst)
    for (size_t p = 0; p < trace_.parts.size(); ++p)
      for (const FlightCall& call : trace_.parts[p].flight_calls) {
        if (call.group != g) continue;
        ++sum.calls;
        const Call one{static_cast<int32_t>(p), &call};
        if (call.is_p2p) {
          // "coalesced" is the end of a batch, whose sends and receives are calls of their own.
          if (call.peer < 0) continue;
          const int32_t own = trace_.parts[p].rank;
          auto& [sends, receives] = messages[call.is_send ? std::pair(own, call.peer) : std::pair(call.peer, own)];
          (call.is_send ? sends : receives).push_back(one);
        } else if (call.sequence >= 0) {
          by_sequence[call.sequence].push_back(one);
        }
      }
    report_.calls += sum.calls;
    sum.collectives = by_sequence.size();
    last_of_.clear();
    for (const auto& [sequence, calls] : by_sequence)
      for (const Call& call : calls) last_of_[call.part] = sequence;
    for (auto& [sequence, calls] : by_sequence) {
      sum.last_made = std::max(sum.last_made, sequence);
      if (judge_collective(g, sequence, calls, members, without_dump))
        sum.last_through = std::max(sum.last_through, sequence);
    }
    for (auto& [ends, both] : messages) {
      sum.messages += static_cast<int64_t>(std::max(both.first.size(), both.second.size()));
      judge_messages(g, ends.first, ends.second, both.first, both.second);
    }
    report_.groups.push_back(sum);
  }

  // Returns the value of `key` that most calls have; nullptr when two values are equally frequent.
  template <class Key>
  static const std::string* majority(const std::vector<Call>& calls, const Key& key,
                                     std::map<std::string, int64_t>& votes) {
    votes.clear();
    for (const Call& c : calls) ++votes[key(c)];
    const std::pair<const std::string, int64_t>* best = nullptr;
    bool tie = false;
    for (const auto& vote : votes) {
      tie = best && vote.second == best->second ? true : (!best || vote.second > best->second ? false : tie);
      if (!best || vote.second > best->second) best = &vote;
    }
    return tie ? nullptr : &best->first;
  }

  // Members whose `key` differs from the majority's become culprits. Returns true when all agree.
  template <class Key>
  bool agree(const std::vector<Call>& calls, const Key& key, FlightVerdict verdict, FlightProblem& problem) const {
    std::map<std::string, int64_t> votes;
    const std::string* usual = majority(calls, key, votes);
    if (votes.size() < 2) return true;
    problem.verdict = verdict;
    problem.expected = usual ? *usual : "";
    std::map<std::string, std::vector<int32_t>> others;
    for (const Call& c : calls) {
      std::string own = key(c);
      if (usual && own == *usual) continue;
      others[std::move(own)].push_back(rank(c.part));
      if (usual) problem.culprits.push_back(rank(c.part));
    }
    for (const auto& [what, ranks] : others)
      append_item(problem.found, std::string(ranks.size() == 1 ? "rank " : "ranks ") + list_text(ranks) + ": " + what,
                  "; ");
    return false;
  }

  std::string sizes_key(const FlightCall& call) const {
    const std::string_view op = text(call.op);
    std::string key;
    if (compares_inputs(op)) key += std::string(text(call.in_sizes));
    if (compares_outputs(op) && (key.empty() || call.out_sizes != call.in_sizes))
      append_item(key, std::string(text(call.out_sizes)), " → ");
    return key;
  }

  // False for a call that contradicts itself, such as an all_reduce whose output has another size than its input.
  bool fits_itself(const Call& c, size_t group_size) const {
    const CollectiveFact* fact = fact_of(part(c.part).collectives, c.call->slice);
    const std::string_view op = text(c.call->op);
    if (!fact || fact->in_elements == 0 || fact->out_elements == 0 || group_size == 0) return true;
    const int64_t n = group_size;
    if (op == "all_reduce" || op == "allreduce") return fact->in_elements == fact->out_elements;
    if (op == "all_gather" || op == "_all_gather_base" || op == "all_gather_into_tensor")
      return fact->out_elements == fact->in_elements * n || fact->out_elements == fact->in_elements;
    if (op == "reduce_scatter" || op == "_reduce_scatter_base" || op == "reduce_scatter_tensor")
      return fact->in_elements == fact->out_elements * n || fact->out_elements == fact->in_elements;
    return true;
  }

  // A batch of collectives has one number; the call that ends the batch shows the progress of all of it.
  static std::vector<Call> last_of_batches(const std::vector<Call>& calls) {
    std::vector<Call> last;
    for (const Call& c : calls)
      if (last.empty() || last.back().part != c.part) last.push_back(c);
      else if (c.call->record_id > last.back().call->record_id) last.back() = c;
    return last;
  }

  // Lists the members that did not make the call as culprits. Returns false when a member may have lost it.
  bool find_missing(const std::vector<Call>& calls, const std::vector<int32_t>& members, FlightProblem& problem) const {
    std::set<int32_t> present = mapped<std::set>(calls, &Call::part);
    bool known = true;
    for (const int32_t p : members) {
      if (present.contains(p)) continue;
      if (overwritten(p, calls)) known = false;
      else problem.culprits.push_back(rank(p));
    }
    return known;
  }

  // Lists the ranks that wait in the call. Returns how many ranks are through.
  template <class IsThrough>
  size_t find_waiting(const std::vector<Call>& calls, IsThrough through, FlightProblem& problem) const {
    for (const Call& c : calls) {
      if (through(*c.call)) continue;
      problem.waiting.push_back(rank(c.part));
      if (c.call->state == FlightState::kScheduled) problem.not_started.push_back(rank(c.part));
    }
    return calls.size() - problem.waiting.size();
  }

  std::string op_of(const Call& c) const { return std::string(text(c.call->op)); }

  // Returns the operation that most ranks made; the first one where there is no majority.
  StringId usual_op(const std::vector<Call>& calls) const {
    std::map<std::string, int64_t> votes;
    const std::string* usual = majority(calls, [&](const Call& call) { return op_of(call); }, votes);
    StringId op = calls.front().call->op;
    for (const Call& c : calls)
      if (usual && op_of(c) == *usual) op = c.call->op;
    return op;
  }

  // Returns true when all ranks made the same call; otherwise the problem says in what they differ.
  bool same_call(const std::vector<Call>& calls, size_t group_size, const std::vector<int32_t>& without_dump,
                 FlightProblem& problem) const {
    const auto op_key = [&](const Call& call) { return op_of(call); };
    const auto size_key = [&](const Call& c) {
      return sizes_key(*c.call) + (fits_itself(c, group_size) ? "" : " (input and output do not fit)");
    };
    const auto dtype_key = [&](const Call& c) {
      const std::string in(text(c.call->in_dtypes)), out(text(c.call->out_dtypes));
      return in == out || out.empty() ? in : in.empty() ? out : in + " → " + out;
    };
    return agree(calls, op_key, FlightVerdict::kType, problem) &&
           agree(calls, size_key, FlightVerdict::kSizes, problem) &&
           (!compares_dtypes(text(problem.op)) || agree(calls, dtype_key, FlightVerdict::kDtype, problem)) &&
           exchange_adds_up(calls, without_dump, problem);
  }

  // Returns true when the collective is finished for all members.
  bool judge_collective(int32_t g, int64_t sequence, const std::vector<Call>& calls,
                        const std::vector<int32_t>& members, const std::vector<int32_t>& without_dump) {
    const std::vector<Call> last = last_of_batches(calls);
    FlightProblem problem{.group = g, .sequence = sequence, .without_dump = without_dump};
    if (!find_missing(last, members, problem)) {
      ++report_.overwritten;
      return false;
    }
    ++report_.judged;
    // A collective that a member never made, or made as another one, cannot be finished by any rank. Who made another
    // one after it got out of it.
    const bool possible = problem.culprits.empty() && std::ranges::all_of(last, [&](const Call& call) {
                            return op_of(call) == op_of(last.front());
                          });
    for (const Call& c : last)
      if (!possible && c.call->completed_ns < 0 && last_of_[c.part] == sequence) gave_up_.insert(c.call);
    const size_t through = find_waiting(last, [&](const FlightCall& call) { return is_through(call); }, problem);
    problem.op = usual_op(last);
    if (!problem.culprits.empty()) {
      // A call that is finished for all other ranks did not wait: that dump was only taken a moment earlier.
      if (problem.waiting.empty()) return true;
      problem.verdict = FlightVerdict::kMissing;
      finish(std::move(problem), last);
      return false;
    }
    if (!same_call(last, members.size() + without_dump.size(), without_dump, problem)) {
      const bool is_finished = problem.waiting.empty();
      finish(std::move(problem), last);
      return is_finished;
    }
    if (through == last.size()) return without_dump.empty();
    problem.verdict = through > 0 ? FlightVerdict::kStuck : FlightVerdict::kUnfinished;
    if (through > 0) problem.culprits = problem.waiting;
    finish(std::move(problem), last);
    return false;
  }

  // In an all-to-all, what all ranks send must be what all ranks receive.
  bool exchange_adds_up(const std::vector<Call>& calls, const std::vector<int32_t>& without_dump,
                        FlightProblem& problem) const {
    const std::string_view op = text(problem.op);
    if (!(mentions(op, "all_to_all") || mentions(op, "alltoall")) || !without_dump.empty()) return true;
    int64_t sent = 0, received = 0;
    for (const Call& c : calls) {
      const CollectiveFact* fact = fact_of(part(c.part).collectives, c.call->slice);
      if (!fact || (fact->in_elements == 0 && fact->out_elements == 0)) return true;
      sent += fact->in_elements;
      received += fact->out_elements;
    }
    if (sent == received) return true;
    problem.verdict = FlightVerdict::kSizes;
    problem.expected = "as many elements received as sent";
    problem.found = std::to_string(sent) + " sent, " + std::to_string(received) + " received";
    return false;
  }

  // True when a member's ring may have lost the call, because its records begin after the others made the call.
  bool overwritten(int32_t p, const std::vector<Call>& calls) const {
    if (!began_late(p)) return false;
    int64_t first_sequence = INT64_MAX, first_ns = INT64_MAX;
    const FlightCall& sample = *calls.front().call;
    for (const FlightCall& call : part(p).flight_calls) {
      first_ns = std::min(first_ns, part(p).slices.start_ns[call.slice]);
      if (call.group == sample.group && !call.is_p2p) first_sequence = std::min(first_sequence, call.sequence);
    }
    if (first_sequence != INT64_MAX) return sample.sequence < first_sequence;
    return start_of(calls.front()) < first_ns;
  }

  // Returns true when both sides of a message fit; otherwise the problem says in what they differ.
  bool fit_together(const Call& send, const Call& receive, FlightProblem& problem) const {
    const CollectiveFact* out = fact_of(part(send.part).collectives, send.call->slice);
    const CollectiveFact* in = fact_of(part(receive.part).collectives, receive.call->slice);
    std::string_view sent = text(send.call->in_dtypes), wanted = text(receive.call->out_dtypes);
    if (out && in && out->in_elements != in->out_elements) {
      problem.verdict = FlightVerdict::kSizes;
      sent = text(send.call->in_sizes), wanted = text(receive.call->out_sizes);
    } else if (!sent.empty() && !wanted.empty() && sent != wanted) {
      problem.verdict = FlightVerdict::kDtype;
    } else {
      return true;
    }
    problem.expected = "the same on both sides";
    problem.found = "rank " + std::to_string(problem.src) + " sends " + std::string(sent) + ", rank " +
                    std::to_string(problem.dst) + " receives " + std::string(wanted);
    return false;
  }

  // Judges the k-th send and the k-th receive between two ranks; one of them may be missing.
  void judge_message(FlightProblem problem, const std::vector<Call>& both) {
    ++report_.judged;
    problem.is_p2p = true;
    problem.op = both.front().call->op;
    const auto completed = [](const FlightCall& call) { return call.state == FlightState::kCompleted; };
    const size_t through = find_waiting(both, completed, problem);
    if (both.size() == 1) {
      if (through == 1) return;  // a small send is finished before anybody receives it
      problem.verdict = FlightVerdict::kMissing;
      problem.culprits = {both[0].call->is_send ? problem.dst : problem.src};
    } else if (fit_together(both[0], both[1], problem)) {
      if (through == 2) return;
      problem.verdict = through > 0 ? FlightVerdict::kStuck : FlightVerdict::kUnfinished;
      if (through > 0) problem.culprits = problem.waiting;
    }
    finish(std::move(problem), both);
  }

  void judge_messages(int32_t g, int32_t src, int32_t dst, std::vector<Call>& sends, std::vector<Call>& receives) {
    const auto from = part_of_.find(src), to = part_of_.find(dst);
    if (from == part_of_.end() || to == part_of_.end()) return;
    if (began_late(from->second) || began_late(to->second)) {
      // The dumps do not record from where on the k-th of one side is the k-th of the other.
      report_.overwritten += static_cast<int64_t>(std::max(sends.size(), receives.size()));
      return;
    }
    const auto record_of = [](const Call& c) { return c.call->record_id; };
    sort_stably(sends, {}, record_of);
    sort_stably(receives, {}, record_of);
    for (size_t k = 0; k < std::max(sends.size(), receives.size()); ++k) {
      std::vector<Call> both;
      if (k < sends.size()) both.push_back(sends[k]);
      if (k < receives.size()) both.push_back(receives[k]);
      FlightProblem problem{.group = g, .sequence = static_cast<int64_t>(k) + 1};
      problem.src = src, problem.dst = dst;
      judge_message(std::move(problem), both);
    }
  }

  // Fills in since when ranks wait, and which call to show.
  void finish(FlightProblem problem, const std::vector<Call>& calls) {
    int64_t since = INT64_MAX, first = INT64_MAX;
    for (const Call& c : calls) {
      first = std::min(first, start_of(c));
      if (!is_through(*c.call)) since = std::min(since, start_of(c));
    }
    problem.since_ns = since != INT64_MAX ? since : first;
    const Call* shown = nullptr;
    for (const Call& c : calls) {
      const auto is = [&](const std::vector<int32_t>& ranks) {
        return std::ranges::find(ranks, rank(c.part)) != ranks.end();
      };
      if (is(problem.culprits) || (!shown && is(problem.waiting))) shown = &c;
      if (is(problem.culprits)) break;
    }
    if (problem.verdict == FlightVerdict::kMissing) {
      // The culprit did not make this call, so its last call shows where it is.
      problem.part = part_of_.at(problem.culprits.front());
      int64_t last = -1;
      for (const FlightCall& call : part(problem.part).flight_calls)
        if (call.record_id > last) last = call.record_id, problem.slice = call.slice;
    } else if (shown) {
      problem.part = shown->part;
      problem.slice = shown->call->slice;
    } else {
      problem.part = calls.front().part;
      problem.slice = calls.front().call->slice;
    }
    report_.problems.push_back(std::move(problem));
  }

  void find_waits() {
    for (int32_t p = 0; p < std::ssize(trace_.parts); ++p) {
      const std::vector<FlightCall>& calls = trace_.parts[p].flight_calls;
      const FlightCall* oldest = nullptr;
      for (const FlightCall& call : calls)
        if (!is_through(call) && (!oldest || call.record_id < oldest->record_id)) oldest = &call;
      if (!oldest) continue;
      FlightWait wait{.rank = trace_.parts[p].rank,
                      .part = p,
                      .slice = oldest->slice,
                      .call = static_cast<size_t>(oldest - calls.data())};
      for (const FlightProblem& problem : report_.problems) {
        if (problem.verdict != FlightVerdict::kMissing || problem.group != oldest->group ||
            problem.is_p2p != oldest->is_p2p)
          continue;
        const bool same = problem.is_p2p ? (problem.src == wait.rank || problem.dst == wait.rank) &&
                                               problem.culprits.front() == oldest->peer
                                         : problem.sequence == oldest->sequence;
        if (same && std::ranges::find(problem.waiting, wait.rank) != problem.waiting.end()) {
          wait.for_ranks = problem.culprits;
          break;
        }
      }
      report_.waits.push_back(std::move(wait));
    }
  }

  // Goes from rank to rank that it waits for. A rank that is met twice is part of a ring; a rank that waits for no
  // other rank delays the rest.
  void find_roots() {
    std::map<int32_t, const FlightWait*> wait_of;
    for (const FlightWait& wait : report_.waits) wait_of[wait.rank] = &wait;
    std::set<int32_t> roots;
    std::map<int32_t, int> seen;  // 1: on the path; 2: done
    for (const FlightWait& first : report_.waits) {
      std::vector<std::pair<int32_t, size_t>> path;  // (rank, next index in its for_ranks)
      if (seen[first.rank] == 0) path.push_back({first.rank, 0});
      seen[first.rank] = std::max(seen[first.rank], 1);
      while (!path.empty()) {
        auto& [at, next] = path.back();
        const auto wait = wait_of.find(at);
        if (wait == wait_of.end() || next >= wait->second->for_ranks.size()) {
          seen[at] = 2;
          path.pop_back();
          continue;
        }
        const int32_t to = wait->second->for_ranks[next++];
        if (!wait_of.contains(to)) {
          roots.insert(to);
        } else if (seen[to] == 0) {
          seen[to] = 1;
          path.push_back({to, 0});
        } else if (seen[to] == 1 && report_.cycle.empty()) {
          const auto begin = std::ranges::find_if(path, [&](const auto& step) { return step.first == to; });
          for (auto step = begin; step != path.end(); ++step) report_.cycle.push_back(step->first);
        }
      }
    }
    report_.roots.assign(roots.begin(), roots.end());
  }

  // Calls that differ or are missing come before their consequences, and in each group the earliest comes first.
  void order_problems() {
    const auto weight = [](const FlightProblem& p) {
      switch (p.verdict) {
        case FlightVerdict::kType:
        case FlightVerdict::kSizes:
        case FlightVerdict::kDtype: return p.waiting.empty() ? 2 : 0;
        case FlightVerdict::kMissing: return 1;
        case FlightVerdict::kStuck: return 3;
        case FlightVerdict::kUnfinished: return 4;
      }
      return 5;
    };
    // Missing calls that the ranks at the root did not make come first.
    const auto held_by_root = [&](const FlightProblem& p) {
      return std::ranges::any_of(p.culprits, [&](int32_t r) { return std::ranges::binary_search(report_.roots, r); });
    };
    sort_stably(report_.problems, {}, [&](const FlightProblem& a) { return std::tuple(weight(a), !held_by_root(a)); });
  }

  const Trace& trace_;
  std::map<int32_t, int32_t> part_of_;   // rank → part
  std::map<int32_t, int64_t> last_of_;   // of the group that is judged: for each part its last collective
  std::set<const FlightCall*> gave_up_;  // retired by a time-out: they cannot be finished
  FlightReport report_;
};

}  // namespace

std::string_view flight_verdict_name(FlightVerdict verdict) {
  static constexpr auto kTexts =
      texts_by<FlightVerdict::kUnfinished>({"missing", "type", "sizes", "dtype", "stuck", "unfinished"});
  return kTexts[verdict];
}

bool has_flight_calls(const Trace& trace) {
  return std::ranges::any_of(trace.parts, [](const Part& part) { return !part.flight_calls.empty(); });
}

FlightReport match_flight(const Trace& trace) { return Matcher(trace).match(); }

std::string flight_group_text(const FlightGroup& group) {
  if (group.description.empty() || group.description == "undefined") return "group " + group.name;
  return group.description + (group.name == group.description ? "" : " (group " + group.name + ")");
}

std::string flight_call_text(const Trace& trace, const FlightCall& call) {
  std::string text(trace.names.text(call.op));
  if (call.sequence >= 0) text += " " + std::to_string(call.sequence);
  if (call.is_p2p && call.peer >= 0)
    text += std::string(call.is_send ? " to" : " from") + " rank " + std::to_string(call.peer);
  return text + " of " + flight_group_text(trace.flight_groups[call.group]);
}

std::string flight_frame_text(const Trace& trace, int32_t part, uint32_t slice) {
  if (part < 0 || slice == kNoSliceIndex) return {};
  const StackFact* fact = fact_of(trace.parts[part].stacks, slice);
  if (!fact) return {};
  const std::vector<std::string_view> frames = split(trace.names.text(fact->stack), ';');
  for (const std::string_view frame : frames)
    if (!mentions(frame, "/torch/distributed/") && !mentions(frame, "/torch/nn/") && !mentions(frame, "/torch/_"))
      return std::string(frame);
  return frames.empty() ? std::string() : std::string(frames.front());
}

}  // namespace stageline
