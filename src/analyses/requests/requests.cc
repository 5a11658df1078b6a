// Requests of a server, as it measured them: the time to the first token, by queue and prefill, and the time of each
// further token. Definitions: docs/analyses/requests.md.
#include "analyses/analysis.h"
#include "model/run_extent.h"
#include "model/statistics.h"

namespace stageline {
namespace {

double known(int64_t ns) { return ns < 0 ? kNaN : static_cast<double>(ns); }

double whole_of(const ServedRequest& r) { return static_cast<double>(r.end_ns - r.start_ns); }

double first_token_of(const ServedRequest& r) {
  return r.first_token_ns < 0 ? known(r.queue_ns) + known(r.prefill_ns) : known(r.first_token_ns);
}

// The time of a token after the first.
double token_of(const ServedRequest& r) {
  const double decode = r.decode_ns < 0 ? whole_of(r) - first_token_of(r) : known(r.decode_ns);
  return r.completion_tokens > 1 ? decode / static_cast<double>(r.completion_tokens - 1) : kNaN;
}

struct Request {
  const ServedRequest* r;
  int32_t rank;
};

// Returns the requests that pass the filters, by arrival.
std::vector<Request> requests_of(const Trace& trace, int64_t zero_ns) {
  const SliceFilter& filter = trace.slice_filter;
  std::vector<Request> out;
  for (const Part& part : trace.parts)
    for (const ServedRequest& r : part.requests)
      if (r.end_ns - zero_ns >= filter.from_ns && r.start_ns - zero_ns <= filter.to_ns &&
          (filter.ranks.empty() || std::ranges::binary_search(filter.ranks, part.rank)))
        out.push_back({&r, part.rank});
  sort_stably(out, {}, [](const Request& one) { return one.r->start_ns; });
  return out;
}

Table requests_table(const std::vector<Request>& requests, int64_t zero_ns) {
  Table table(declared_table("requests/requests"));
  const auto or_null = [](int64_t value) { return value < 0 ? kNullInteger : value; };
  for (const auto& [r, rank] : requests)
    table.add_row({int64_t{rank}, r->id, r->start_ns - zero_ns, r->end_ns - r->start_ns, or_null(r->queue_ns),
                   or_null(r->prefill_ns), or_null(r->decode_ns), whole_ns(first_token_of(*r)), whole_ns(token_of(*r)),
                   or_null(r->prompt_tokens), or_null(r->cached_tokens), or_null(r->completion_tokens)});
  return table;
}

Table times_table(const std::vector<Request>& requests) {
  Table table(declared_table("requests/request-times"));
  const double whole = sum_over<double>(requests, [](const Request& one) { return whole_of(*one.r); });
  const auto add = [&](const char* name, auto&& of, bool is_part = false) {
    std::vector<double> values;
    for (const Request& one : requests)
      if (const double ns = of(*one.r); std::isfinite(ns)) values.push_back(ns);
    if (values.empty()) return;
    std::ranges::sort(values);
    const auto at = [&](double p) { return whole_ns(quantile(values, p)); };
    table.add_row({std::string(name), std::ssize(values), whole_ns(mean_of(values)), at(0.5), at(0.9), at(0.99), at(1),
                   is_part ? share_of(sum_over<double>(values), whole) : kNaN});
  };
  add("request", whole_of);
  add("first token", first_token_of);
  add("queue", [](const ServedRequest& r) { return known(r.queue_ns); }, true);
  add("prefill", [](const ServedRequest& r) { return known(r.prefill_ns); }, true);
  add("decode", [](const ServedRequest& r) { return known(r.decode_ns); }, true);
  add("token", token_of);
  return table;
}

}  // namespace

Result<AnalysisResult> run_requests(const AnalysisInput& input) {
  const Trace& trace = input.run().trace();
  const int64_t zero_ns = axis_zero_ns(trace);
  const std::vector<Request> requests = requests_of(trace, zero_ns);
  return AnalysisResult().with(times_table(requests), requests_table(requests, zero_ns));
}

}  // namespace stageline
