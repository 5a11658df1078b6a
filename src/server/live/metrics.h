// Numbers of a running job, in the forms of Prometheus and OpenTelemetry.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stageline {

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

}  // namespace stageline
