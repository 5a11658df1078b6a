#include "sql/functions.h"

#include <new>

#include "base/name_pattern.h"
#include "model/intervals.h"
#include "model/slice_facts.h"
#include "sql/table_source.h"

namespace stageline::sql {
namespace {

// The maximum number of values that quantile() keeps, at 8 bytes each; more are an error.
constexpr size_t kMaxQuantileValues = 50'000'000;

// Collects intervals and merges them from time to time, so that memory is bounded by the size of their union.
class Cover {
 public:
  void add(int64_t start, int64_t dur) {
    if (dur <= 0) return;
    pending_.push_back({start, sum_or_limit(start, dur)});
    if (pending_.size() >= limit_) settle();
  }
  const std::vector<Interval>& merged() {
    settle();
    return pending_;
  }

 private:
  void settle() {
    pending_ = union_of(std::move(pending_));
    limit_ = std::max(kMinPending, 2 * pending_.size());
  }
  static constexpr size_t kMinPending = size_t{1} << 20;
  std::vector<Interval> pending_;
  size_t limit_ = kMinPending;
};

struct UnionState {
  Cover sides[2];
};
struct QuantileState {
  std::vector<double> values;
  double q = 0.5;
};

// SQLite reserves room for one pointer per aggregate; what it points at is ours.
template <class State> State* state_of(sqlite3_context* context, bool make) {
  auto** place = static_cast<State**>(sqlite3_aggregate_context(context, make ? sizeof(State*) : 0));
  if (!place) return nullptr;
  if (!*place && make) *place = new (std::nothrow) State();
  if (!*place && make) sqlite3_result_error_nomem(context);
  return *place;
}

// Runs `body` and catches what it throws, which must not pass through SQLite's C code.
template <class Body> void guarded(sqlite3_context* context, const Body& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

void union_step(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded(context, [&] {
    UnionState* state = state_of<UnionState>(context, true);
    if (!state || sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL) return;
    size_t side = 0;
    if (count == 3) {
      if (sqlite3_value_type(values[2]) == SQLITE_NULL) return;
      side = sqlite3_value_int64(values[2]) != 0 ? 1 : 0;
    }
    state->sides[side].add(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[1]));
  });
}
void union_final(sqlite3_context* context) {
  guarded(context, [&] {
    const std::unique_ptr<UnionState> state(state_of<UnionState>(context, false));
    if (!state) return sqlite3_result_null(context);
    sqlite3_result_int64(context, length_of(state->sides[0].merged()));
  });
}
void both_final(sqlite3_context* context) {
  guarded(context, [&] {
    const std::unique_ptr<UnionState> state(state_of<UnionState>(context, false));
    if (!state) return sqlite3_result_null(context);
    sqlite3_result_int64(context, shared_length(state->sides[0].merged(), state->sides[1].merged()));
  });
}

void quantile_step(sqlite3_context* context, int count, sqlite3_value** values) {
  guarded(context, [&] {
    QuantileState* state = state_of<QuantileState>(context, true);
    if (!state || sqlite3_value_type(values[0]) == SQLITE_NULL) return;
    if (count == 2) {
      state->q = sqlite3_value_double(values[1]);
      if (!(state->q >= 0 && state->q <= 1))
        return sqlite3_result_error(context, "quantile() takes a share from 0 to 1", -1);
    }
    if (state->values.size() >= kMaxQuantileValues)
      return sqlite3_result_error(context, "quantile() of more than 50 million values", -1);
    state->values.push_back(sqlite3_value_double(values[0]));
  });
}
void quantile_final(sqlite3_context* context) {
  guarded(context, [&] {
    const std::unique_ptr<QuantileState> state(state_of<QuantileState>(context, false));
    if (!state || state->values.empty()) return sqlite3_result_null(context);
    // Interpolates between two order statistics, both found without sorting the rest.
    std::vector<double>& v = state->values;
    const double at = (v.size() - 1) * state->q;
    const auto low = v.begin() + static_cast<ptrdiff_t>(at);
    std::nth_element(v.begin(), low, v.end());
    const double below = *low;
    const double above = low + 1 == v.end() ? below : *std::min_element(low + 1, v.end());
    const double share = at - std::floor(at);
    sqlite3_result_double(context, share > 0 ? below + (above - below) * share : below);
  });
}

void free_pattern(void* pattern) { delete static_cast<NamePattern*>(pattern); }

// Answers matches(text, expression). SQLite writes "text REGEXP expression" as regexp(expression, text).
void match(sqlite3_context* context, sqlite3_value* text, sqlite3_value* expression, int place) {
  guarded(context, [&] {
    if (sqlite3_value_type(text) == SQLITE_NULL || sqlite3_value_type(expression) == SQLITE_NULL)
      return sqlite3_result_null(context);
    auto* pattern = static_cast<NamePattern*>(sqlite3_get_auxdata(context, place));
    std::unique_ptr<NamePattern> made;
    if (!pattern) {
      Result<NamePattern> parsed = NamePattern::expression(text_of(expression));
      if (!parsed) return sqlite3_result_error(context, parsed.error().what.c_str(), -1);
      made = std::make_unique<NamePattern>(std::move(*parsed));
      pattern = made.get();
    }
    if (!is_too_much(context, sqlite3_value_bytes(text), sqlite3_value_bytes(expression)))
      sqlite3_result_int(context, pattern->matches(text_of(text)));
    if (made) sqlite3_set_auxdata(context, place, made.release(), free_pattern);
  });
}
void matches(sqlite3_context* context, int, sqlite3_value** values) { match(context, values[0], values[1], 1); }
void regexp(sqlite3_context* context, int, sqlite3_value** values) { match(context, values[1], values[0], 0); }

void short_name(sqlite3_context* context, int, sqlite3_value** values) {
  guarded(context, [&] {
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
    show_copy(context, short_kernel_name(text_of(values[0])));
  });
}
void ms(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  sqlite3_result_double(context, sqlite3_value_double(values[0]) / 1e6);
}
void pretty(sqlite3_context* context, int, sqlite3_value** values) {
  guarded(context, [&] {
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
    show_copy(context, human_duration(sqlite3_value_double(values[0])));
  });
}

}  // namespace

const std::vector<FunctionHelp>& function_helps() {
  static const std::vector<FunctionHelp> helps = {
#define FUNCTION(call, help) {call, help},
#include "sql/functions.def"
  };
  return helps;
}

int add_functions(sqlite3* db) {
  constexpr int kPure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  int code = SQLITE_OK;
  const auto scalar = [&](const char* name, int arguments, void (*call)(sqlite3_context*, int, sqlite3_value**)) {
    if (code == SQLITE_OK)
      code = sqlite3_create_function_v2(db, name, arguments, kPure, nullptr, call, nullptr, nullptr, nullptr);
  };
  const auto aggregate = [&](const char* name, int arguments, void (*step)(sqlite3_context*, int, sqlite3_value**),
                             void (*final)(sqlite3_context*)) {
    if (code == SQLITE_OK)
      code = sqlite3_create_function_v2(db, name, arguments, kPure, nullptr, nullptr, step, final, nullptr);
  };
  aggregate("union_ns", 2, union_step, union_final);
  aggregate("both_ns", 3, union_step, both_final);
  aggregate("quantile", 2, quantile_step, quantile_final);
  aggregate("median", 1, quantile_step, quantile_final);
  scalar("matches", 2, matches);
  scalar("regexp", 2, regexp);
  scalar("short_name", 1, short_name);
  scalar("ms", 1, ms);
  scalar("pretty", 1, pretty);
  return code == SQLITE_OK ? add_bounded_functions(db) : code;
}

}  // namespace stageline::sql
