#include "exporters/ascend_db/rank_rows.h"
#include "model/message_names.h"

namespace stageline::ascend_db {
namespace {

double us(int64_t ns) { return ns / 1e3; }
double ms(int64_t ns) { return ns / 1e6; }
double mb(int64_t bytes) { return bytes / 1e6; }

// Returns the pieces of sorted, disjoint intervals that lie in [start, end).
std::vector<Interval> within(const std::vector<Interval>& all, Span step) {
  std::vector<Interval> out;
  auto at =
      std::lower_bound(all.begin(), all.end(), step.start, [](const Interval& i, int64_t t) { return i.end <= t; });
  for (; at != all.end() && at->start < step.end; ++at)
    out.push_back({std::max(at->start, step.start), std::min(at->end, step.end)});
  return out;
}

int64_t total(const std::vector<Interval>& intervals) {
  return sum_over<int64_t>(intervals, [](const Interval& i) { return i.end - i.start; });
}

int64_t common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  int64_t sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<int64_t>(0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

void step_rows(SqliteInsert& insert, const RankRows& rows, const AscendDbOptions& options,
               const std::vector<Span>& steps) {
  std::vector<Interval> communication, receives;
  for (const CommunicationRow& op : rows.communications()) {
    communication.push_back({op.device.start, op.device.end});
    if (op.kind == "receive") receives.push_back({op.device.start, op.device.end});
  }
  const std::vector<Interval> computing = union_of(rows.computing());
  communication = union_of(std::move(communication));
  receives = union_of(std::move(receives));
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::vector<Interval> compute = within(computing, steps[i]), comm = within(communication, steps[i]);
    const std::vector<Interval> receive = within(receives, steps[i]);
    const int64_t whole = steps[i].end - steps[i].start, busy = total(compute), talk = total(comm);
    const int64_t both = common(compute, comm), bubble = total(receive), hidden = common(compute, receive);
    // The profiler sums all receives as "bubble", and calls the rest of the step "stage".
    const std::string step = std::to_string(options.first_step + static_cast<int64_t>(i));
    insert.text(step).real(us(busy)).real(us(talk - both)).real(us(both));
    insert.real(us(talk)).real(us(whole - busy - talk + both)).real(us(whole - bubble)).real(us(bubble));
    insert.real(us(talk - both - (bubble - hidden))).real(0).next();
  }
}

void communication_rows(const SqliteDb& db, const RankRows& rows, const AscendDbOptions& options, int64_t offset_ns,
                        Status& status) {
  SqliteInsert time(db, "CommAnalyzerTime", 10), band(db, "CommAnalyzerBandwidth", 12),
      link(db, "CommAnalyzerMatrix", 11);
  for (const CommunicationRow& op : rows.communications()) {
    const std::string group = hccl_group_digits(op.group->name);
    const std::string step = "step" + std::to_string(options.first_step + op.step);
    const std::string_view type = op.kind == "allReduce" ? "collective" : "p2p";
    const int64_t lasts = op.device.end - op.device.start,
                  moves = std::clamp<int64_t>(op.transit_ns, 1, std::max<int64_t>(lasts, 1));
    const double gb_per_s = op.bytes / static_cast<double>(moves);
    time.text(op.name).text(group).real(us(op.device.start + offset_ns)).real(ms(lasts)).real(ms(moves));
    time.real(ms(lasts - moves)).real(ms(lasts - moves)).real(0).text(step).text(type).next();
    band.text(op.name).text(group).text("HCCS").real(mb(op.bytes)).real(ms(moves)).real(gb_per_s).real(0);
    band.real(mb(op.bytes)).integer(1).real(ms(moves)).text(step).text(type).next();
    for (const auto& [src, dst] : op.transfers) {
      const std::string from = std::to_string(src), to = std::to_string(dst);
      link.text(std::string_view(op.name)).text(group).text(from).text(to).text("HCCS").real(mb(op.bytes));
      link.real(ms(moves)).real(gb_per_s).text(step).text(type).text(op.name).next();
    }
  }
  for (const SqliteInsert* insert : {&time, &band, &link})
    if (status)
      if (Status s = insert->status(); !s) status = s;
}

}  // namespace

Status write_analysis_db(const RankRows& rows, const AscendDbOptions& options, const std::vector<Span>& steps,
                         int64_t offset_ns, const std::string& path) {
  TRY(out, OutputFile::create(path));
  {
    TRY(db, SqliteDb::open_new(*out));
    TRY_OK(db->run("BEGIN"));
    TRY_OK(create_analysis_tables(*db, options.level));
    Status status;
    {
      SqliteInsert insert(*db, "StepTraceTime", 10);
      step_rows(insert, rows, options, steps);
      status = insert.status();
    }
    if (status && options.level == AscendLevel::kLevel1) communication_rows(*db, rows, options, offset_ns, status);
    if (!status) return status;
    TRY_OK(db->run("COMMIT"));
  }
  return out->commit();
}

}  // namespace stageline::ascend_db
