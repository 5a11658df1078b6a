// A run that is still going on, as `view --follow` serves it: the numbers of every finished step, the pipeline of the
// last ones, and findings that come and go.
//
//   NewestSteps::look ──▶ steps ──────────────────────────────▶ history, metrics
//                     └─▶ explain of the last few, and of more ──▶ findings: since when, until when ──▶ webhook
//
// One thread follows the run, and a second one explains the many steps, so that the few never wait for them; any thread
// asks. Nothing of the trace is kept between two looks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "engine/newest_steps.h"
#include "server/http/api_answer.h"
#include "server/http/query.h"

namespace stageline {

// Numbers of a running job, in the forms of Prometheus and OpenTelemetry.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // `name` ends in its unit, as Prometheus has it; `type` is "gauge" or "counter". Samples of one name follow each
  // other.
  void add(const char* name, const char* type, const char* help, double value, Labels labels = {});

  std::string prometheus() const;  // its text format
  // A request to export them (OTLP, JSON) at `now_ns`; counters count from `begin_ns`. Both count from 1970.
  std::string otlp(const std::string& run, int64_t begin_ns, int64_t now_ns) const;

 private:
  struct Sample {
    double value = 0;
    Labels labels;
  };
  struct Metric {
    std::string name, type, help;
    std::vector<Sample> samples;
  };
  std::vector<Metric> metrics_;
};

// Notifies another program at once: with an HTTP POST of JSON for each event, in order, on a separate thread. A
// receiver that is slow or away delays nothing.
//
// A message is tried kTries times, then given up and counted. If more than kMaxWaiting wait, the oldest is given up.
class Webhook {
 public:
  static constexpr size_t kMaxWaiting = 256;
  static constexpr int kTries = 3;

  // Makes one for an address such as "https://host:port/path", the value of `flag`. Errors: kUsage for other forms,
  // kUnavailable without libcurl.
  static Result<std::unique_ptr<Webhook>> to(std::string_view url, const std::string& flag);
  // Waits at most `kPatience` seconds until everything that was given to send() is sent or given up.
  ~Webhook();
  static constexpr int kPatience = 10;
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void send(std::string json);

  struct Sums {
    int64_t sent = 0, given_up = 0;
    std::string problem;  // what went wrong in the last failed try; "": none has failed since one succeeded
  };
  Sums sums() const;

 private:
  explicit Webhook(std::string url);
  void work();
  std::string post(const std::string& body) const;  // "" where the receiver answered 2xx, else what went wrong

  const std::string url_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  Sums sums_;
  bool stopping_ = false, through_ = false;
  std::thread thread_;
};

// Where a running job is reported to, besides its page.
struct LiveOutlets {
  std::unique_ptr<Webhook> webhook;  // gets every finding that begins or ends
  bool slack = false;                // as messages of Slack's, in this language
  bool chinese = false;
  std::unique_ptr<Webhook> otlp;  // gets the metrics, as OpenTelemetry's collector takes them
};

class LiveRun {
 public:
  // Findings are computed over two windows of the latest steps: a short one, which detects a new problem at once, and a
  // long one, which separates small problems from noise. A finding stays as long as the short window contains it; a
  // finding that only the long window ever contained stays as long as the long one does. A finding about a single step
  // stays while that step is among the few. It is over when kMisses looks at new steps did not have it, because a fault
  // near a threshold comes and goes by chance. The few are examined after every step, the many when a step was unlike
  // those before it, and at intervals. Six is the minimum at which two slow steps differ clearly from four others, so a
  // new problem is found after its second step. A step is examined as soon as every rank has recorded as much of it as
  // of those before (Look::last_may_grow); it is counted among the steps once it is over.
  static constexpr size_t kFewSteps = 6, kManySteps = 16;
  static constexpr int kMisses = 2;
  static constexpr size_t kMaxSteps = 200'000;    // of a longer run the oldest are dropped
  static constexpr size_t kMaxGone = 100;         // most findings that are over and still listed
  static constexpr size_t kMaxDrawnRanks = 48;    // beyond this, the slowest and a usual rank of each stage are drawn
  static constexpr size_t kMaxDrawnCells = 6000;  // beyond this, one step is drawn instead of two

  LiveRun(std::string title, std::vector<std::string> paths, OpenOptions options, LiveOutlets outlets);

  // Looks again and again until the recording is closed or silent. `say` gets lines for people, in both languages.
  Look::State follow(const std::function<void(const Text&)>& say);

  // {"version", "state", "steps", "findings", "pipeline", …}: docs/viewer-protocol.md. It has only steps after `after`,
  // and if `known` still is the current version, nothing else.
  std::string json(int64_t known, int64_t after) const;
  // Returns the same numbers in Prometheus' text format.
  std::string metrics() const { return measured().prometheus(); }
  bool over() const { return over_.load(); }
  int64_t step_count() const;

 private:
  struct Seen {
    Finding finding;
    double step_ns = 0;      // mean step of the run in which it was found
    int64_t begin_step = 0;  // the last step when it was first found
    int64_t last_step = 0;   // the last step when it was found most recently
    int misses = 0;          // looks at new steps in a row without it
    bool is_gone = false;
    bool shows_in_few = false;  // the few steps have it, or had it once
  };
  enum class Of : uint8_t { kFew, kMany };  // which steps were looked at again
  struct Many {
    std::vector<Seen> findings;
    std::chrono::nanoseconds used{0};  // of the processor's time, by all threads meanwhile
  };
  static std::vector<Seen> find_in(Look& look, size_t count);
  std::vector<Seen> found_in_both() const;
  void look_at_many(const std::vector<RunningStep>& steps);
  void take_many(const std::function<void(const Text&)>& say);
  void take(Look look, double seconds, const std::function<void(const Text&)>& say);
  static bool is_part_of(const Seen& one, const std::vector<Seen>& others);
  void take_findings(std::vector<Seen> found, Of of, int64_t step, const std::function<void(const Text&)>& say);
  void tell(const char* event, const Text& line, const Seen& seen, int64_t step);
  Metrics measured() const;
  void push_metrics();
  void tell_problems(const std::function<void(const Text&)>& say);

  const std::string title_;
  const std::vector<std::string> paths_;
  NewestSteps steps_;
  const LiveOutlets outlets_;
  const int64_t begin_ns_;  // since 1970
  // Only the thread that follows the run touches these.
  std::vector<Seen> found_in_few_, found_in_many_;            // at the last look at each
  int64_t looked_at_ = INT64_MIN, first_of_few_ = INT64_MIN;  // the last and the first of the few steps
  std::chrono::steady_clock::time_point many_at_;             // when the last look at the many was begun
  std::chrono::nanoseconds many_used_{0};
  int64_t many_step_ = INT64_MIN / 2;
  std::set<std::string_view> stated_problems_;
  std::pair<int64_t, Look::State> pushed_;  // step and state of the last metrics that were pushed
  std::chrono::steady_clock::time_point pushed_at_;

  mutable std::mutex mutex_;  // guards everything below
  int64_t version_ = 1;
  Look::State state_ = Look::State::kWaiting;
  std::string why_;
  std::vector<RunningStep> history_;
  int64_t steps_over_ = 0;
  std::vector<Seen> findings_;
  std::string pipeline_json_ = "null";
  std::vector<int32_t> behind_;
  int32_t under_way_ = -1;
  size_t ranks_ = 0;
  int stages_ = 0;
  int64_t lost_records_ = 0, without_device_ = 0, newest_ns_ = 0;
  double look_seconds_ = 0;
  std::atomic<bool> over_{false};

  NewestSteps steps_of_many_;  // only the task below touches it
  std::future<Many> many_;     // the look at the many steps that is under way; it ends before all else is gone
};

// The additional answers of a server that follows a running job: a page, the job's state, metrics.
class LiveRun;

ApiAnswer live_page();
ApiAnswer live_state(const LiveRun& live, const Query& query);    // /api/live
ApiAnswer live_metrics(const LiveRun& live, const Query& query);  // /metrics

}  // namespace stageline
