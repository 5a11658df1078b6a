// cluster_analysis.db: the sums of all ranks as msprof-analyze's mode "all" writes them. MindStudio Insight opens it
// for clusters with more ranks than it takes profiles of. Rows of each rank's analysis.db stay as they are; totals are
// added. Format: docs/exporters/cluster-db.md.
#include <filesystem>

#include "base/embedded.h"
#include "base/json_members.h"
#include "base/sqlite_db.h"
#include "exporters/exporter.h"
#include "model/message_names.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

struct Group {
  std::string name, purpose;     // as parallel_group_info has them; "" where it has not
  std::vector<int32_t> members;  // global ranks in the group's order
};

// plain_sum(x) adds in the order of rows, as msprof-analyze's numbers are added. SUM() of SQLite does so before 3.43;
// since then it makes up for rounding.
void add_plainly(sqlite3_context* context, int, sqlite3_value** values) {
  if (auto* sum = static_cast<double*>(sqlite3_aggregate_context(context, sizeof(double))))
    *sum += sqlite3_value_double(values[0]);
}
void give_plain_sum(sqlite3_context* context) {
  const auto* sum = static_cast<const double*>(sqlite3_aggregate_context(context, sizeof(double)));
  sqlite3_result_double(context, sum ? *sum : 0);
}

class ClusterDb {
 public:
  ClusterDb(const Trace& trace, const SqliteDb& db) : trace_(trace), db_(db) {}

  Status fill() {
    for (const Part& part : trace_.parts) read_groups(part);
    for (const Part& part : trace_.parts) TRY_OK(add_rank(part));
    if (!any_)
      return make_error(ErrorCode::kBadInput,
                        "no rank has sums of an Ascend profiler (analysis.db, step_trace_time.csv)",
                        "profile with torch_npu at Level1, with export_type db");
    add_groups();
    for (const SqliteInsert* insert : {&base_, &hosts_, &ranks_, &groups_, &steps_, &times_, &sizes_, &links_})
      TRY_OK(insert->status());
    sqlite3_create_function_v2(db_.handle(), "plain_sum", 1, SQLITE_UTF8, nullptr, nullptr, add_plainly, give_plain_sum,
                               nullptr);
    TRY_OK(db_.run(embedded_part("cluster-tables", "totals")));
    return pipeline_ ? db_.run(embedded_part("cluster-tables", "stages")) : Status();
  }

 private:
  void read_groups(const Part& part) {
    for (const JsonMember& group : json_members(meta_json(part, "parallel_group_info"))) {
      Group& of = known_[hccl_group_digits(group.key)];
      of.name = std::string(group.key);
      of.purpose = json_text(json_member(group.value, "group_name"));
      if (!of.members.empty()) continue;
      for (const JsonMember& rank : json_members(json_member(group.value, "global_ranks")))
        if (const auto number = json_integer(rank.value)) of.members.push_back(static_cast<int32_t>(*number));
    }
    const std::string_view args = meta_json(part, "distributed_args");
    if (args.empty() || base_known_) return;
    base_known_ = true;
    std::string text;
    for (const JsonMember& arg : json_members(args))
      if (arg.key != "rank")
        text += (text.empty() ? "{\"" : ", \"") + std::string(arg.key) + "\": " + std::string(arg.value);
    base_.text("distributed_args").text(text += "}").next();
  }

  Status add_rank(const Part& part) {
    const fs::path folder = fs::path(part.source).parent_path(), sums = folder / "analysis.db";
    std::error_code ec;
    Diagnostics notes;
    if (!part.source.ends_with(".db") || !fs::exists(sums, ec)) {
      add_summaries(part);
      return {};
    }
    TRY(profile, SqliteDb::open_read(part.source, notes));
    TRY(analysis, SqliteDb::open_read(sums.string(), notes));
    add_place(part, *profile, fs::absolute(folder.parent_path(), ec).string());
    add_steps(part, *analysis);
    add_times(part, *analysis);
    add_links(part, *analysis);
    return {};
  }

  void add_place(const Part& part, const SqliteDb& profile, const std::string& folder) {
    std::string host;
    SqliteRows hosts = rows_of(profile, "HOST_INFO", {"hostUid", "hostName?"});
    if (hosts.next()) {
      host = std::string(hosts.text(0));
      if (seen_hosts_.insert(host).second) hosts_.text(host).text(hosts.text(1)).next();
    }
    ranks_.integer(part.rank).integer(part.device).text(host).text(folder).next();
  }

  // The place of a rank in Megatron's order; no place where the sizes do not fit together.
  void add_indices(const Part& part) {
    const AscendSizes sizes = ascend_sizes(part);
    const int64_t tp = std::max<int64_t>(sizes.tp, 1), cp = std::max<int64_t>(sizes.cp, 1),
                  dp = std::max<int64_t>(sizes.dp, 1), ep = std::max<int64_t>(sizes.ep, 1),
                  pp = std::max<int64_t>(sizes.pp, 1);
    if (dp % ep != 0) {
      steps_.null().null().null().next();
      return;
    }
    pipeline_ |= pp > 1;
    steps_.integer(part.rank / (tp * cp) % dp).integer(part.rank / (tp * cp * dp) % pp).integer(part.rank % tp).next();
  }

  void add_steps(const Part& part, const SqliteDb& analysis) {
    SqliteRows rows =
        rows_of(analysis, "StepTraceTime",
                {"step?", "computing?", "communication_not_overlapped?", "overlapped?", "communication?", "free?",
                 "stage?", "bubble?", "communication_not_overlapped_and_exclude_receive?", "preparing?"});
    const std::string rank = std::to_string(part.rank);
    while (rows.next()) {
      any_ = true;
      steps_.text(rows.text(0)).text("rank").text(rank);
      for (int column = 1; column < 10; ++column) steps_.real(rows.real(column));
      add_indices(part);
    }
  }

  // The columns that text exports of the profiler, or a digest of them, have.
  void add_summaries(const Part& part) {
    const std::string rank = std::to_string(part.rank);
    for (const StepSummary& sum : part.step_summaries) {
      any_ = true;
      const std::string step = sum.step < 0 ? "" : std::to_string(sum.step);
      steps_.text(step).text("rank").text(rank);
      for (const int64_t ns :
           {sum.computing_ns, sum.communication_not_overlapped_ns, sum.overlapped_ns, sum.communication_ns, sum.free_ns,
            sum.stage_ns, sum.bubble_ns, sum.not_overlapped_without_receive_ns, sum.preparing_ns})
        ns < 0 ? steps_.null() : steps_.real(static_cast<double>(ns) / 1e3);
      add_indices(part);
    }
  }

  void add_times(const Part& part, const SqliteDb& analysis) {
    SqliteRows rows = rows_of(analysis, "CommAnalyzerTime",
                              {"step?", "hccl_op_name", "group_name?", "start_timestamp?", "elapse_time?",
                               "transit_time?", "wait_time?", "synchronization_time?", "idle_time?", "type?"});
    while (rows.next()) {
      if (rows.text(1) == "Total Op Info") continue;
      times_.text(rows.text(0)).integer(part.rank).text(rows.text(1)).text(rows.text(2));
      for (int column = 3; column < 9; ++column) times_.real(rows.real(column));
      times_.real(0).real(0).next();
      used_[{std::string(rows.text(9)), std::string(rows.text(2))}].insert(part.rank);
    }
    SqliteRows sizes =
        rows_of(analysis, "CommAnalyzerBandwidth",
                {"step?", "hccl_op_name", "group_name?", "transport_type", "transit_size", "transit_time?",
                 "bandwidth?", "large_packet_ratio?", "package_size?", "count?", "total_duration?"});
    while (sizes.next()) {
      if (sizes.text(1) == "Total Op Info") continue;
      sizes_.text(sizes.text(0)).integer(part.rank);
      for (int column = 1; column < 4; ++column) sizes_.text(sizes.text(column));
      for (int column = 4; column < 9; ++column) sizes_.real(sizes.real(column));
      sizes_.integer(sizes.integer(9)).real(sizes.real(10)).next();
    }
  }

  // Ranks of links count within the group. Where the group's members were not recorded, a link of the rank with itself
  // says its own place.
  void add_links(const Part& part, const SqliteDb& analysis) {
    SqliteRows rows = rows_of(analysis, "CommAnalyzerMatrix",
                              {"step?", "hccl_op_name", "group_name?", "src_rank", "dst_rank", "transport_type?",
                               "op_name?", "transit_size", "transit_time"});
    while (rows.next()) {
      const std::string group(rows.text(2));
      if (rows.integer(3) == rows.integer(4)) own_place_[{group, rows.integer(3)}] = part.rank;
      pending_.push_back({std::string(rows.text(0)), std::string(rows.text(1)), group, std::string(rows.text(5)),
                          std::string(rows.text(6)), rows.integer(3), rows.integer(4), rows.real(7), rows.real(8)});
    }
  }

  int64_t global_rank(const std::string& group, int64_t place) const {
    const auto known = known_.find(group);
    if (known != known_.end() && !known->second.members.empty())
      return place >= 0 && place < std::ssize(known->second.members) ? known->second.members[place] : -1;
    return value_at(own_place_, {group, place}, -1);
  }

  void add_groups() {
    for (const auto& [key, seen] : used_) {
      const auto& [type, digits] = key;
      const Group& group = known_[digits];
      std::set<int32_t> members(group.members.begin(), group.members.end());
      std::string text;
      for (const int32_t rank : members.empty() ? seen : members)
        text += (text.empty() ? "(" : ",") + std::to_string(rank);
      groups_.text(type).text(text += ")").text(digits).text(group.name).text(group.purpose).next();
    }
    for (const Link& link : pending_) {
      const int64_t src = global_rank(link.group, link.src), dst = global_rank(link.group, link.dst);
      if (src < 0 || dst < 0) continue;
      links_.text(link.step)
          .text(link.op)
          .text(link.group)
          .real(static_cast<double>(src))
          .real(static_cast<double>(dst));
      links_.text(link.transport).text(link.name).real(link.mb).real(link.ms);
      links_.real(link.ms > 0 ? link.mb / link.ms : 0).next();
    }
  }

  struct Link {
    std::string step, op, group, transport, name;
    int64_t src, dst;
    double mb, ms;
  };

  const Trace& trace_;
  const SqliteDb& db_;
  SqliteInsert base_{db_, "ClusterBaseInfo", 2}, hosts_{db_, "HostInfo", 2}, ranks_{db_, "RankDeviceMap", 4},
      groups_{db_, "CommunicationGroupMapping", 5}, steps_{db_, "ClusterStepTraceTime", 15},
      times_{db_, "ClusterCommunicationTime", 12}, sizes_{db_, "ClusterCommunicationBandwidth", 12},
      links_{db_, "ClusterCommunicationMatrix", 10};
  bool any_ = false, pipeline_ = false, base_known_ = false;
  std::map<std::string, Group> known_;                                     // by the group's number
  std::map<std::pair<std::string, std::string>, std::set<int32_t>> used_;  // type and number: ranks with operations
  std::map<std::pair<std::string, int64_t>, int32_t> own_place_;
  std::vector<Link> pending_;
  std::set<std::string> seen_hosts_;
};

}  // namespace

Status write_cluster_db(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  {
    TRY(db, SqliteDb::open_new(*out));
    TRY_OK(db->run("BEGIN"));
    TRY_OK(db->run(embedded_part("cluster-tables", "tables")));
    TRY_OK(ClusterDb(input.trace, *db).fill());
    TRY_OK(db->run("COMMIT"));
  }
  return out->commit();
}

}  // namespace stageline
