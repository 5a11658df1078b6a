#include "exporters/ascend_db/tables.h"

namespace stageline::ascend_db {
namespace {

constexpr const char* kAlways = R"sql(
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);
CREATE TABLE META_DATA (name TEXT,value TEXT);
CREATE TABLE SESSION_TIME_INFO (startTimeNs INTEGER,endTimeNs INTEGER);
CREATE TABLE NPU_INFO (id INTEGER,name TEXT);
CREATE TABLE HOST_INFO (hostUid TEXT,hostName TEXT);
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER,deviceId INTEGER);
CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_HCCL_DATA_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_HCCL_LINK_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_HCCL_TRANSPORT_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_HCCL_RDMA_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_MSTX_EVENT_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE MSTX_EVENTS (startNs INTEGER,endNs INTEGER,eventType INTEGER,rangeId INTEGER,category INTEGER,
  message INTEGER,globalTid INTEGER,endGlobalTid INTEGER,domainId INTEGER,connectionId INTEGER);
CREATE TABLE TASK (startNs INTEGER,endNs INTEGER,deviceId INTEGER,connectionId INTEGER,globalTaskId INTEGER,
  globalPid INTEGER,taskType INTEGER,contextId INTEGER,streamId INTEGER,taskId INTEGER,modelId INTEGER);
)sql";
constexpr const char* kSteps = "CREATE TABLE STEP_TIME (id INTEGER,startNs INTEGER,endNs INTEGER)";
constexpr const char* kWork = R"sql(
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER,globalTaskId INTEGER PRIMARY KEY,blockNum INTEGER,mixBlockNum INTEGER,
  taskType INTEGER,opType INTEGER,inputFormats INTEGER,inputDataTypes INTEGER,inputShapes INTEGER,
  outputFormats INTEGER,outputDataTypes INTEGER,outputShapes INTEGER,attrInfo INTEGER);
CREATE TABLE COMMUNICATION_TASK_INFO (name INTEGER,globalTaskId INTEGER,taskType INTEGER,planeId INTEGER,
  groupName INTEGER,notifyId INTEGER,rdmaType INTEGER,srcRank INTEGER,dstRank INTEGER,transportType INTEGER,
  size INTEGER,dataType INTEGER,linkType INTEGER,opId INTEGER);
CREATE INDEX CommunicationTaskIndex ON COMMUNICATION_TASK_INFO (globalTaskId);
CREATE TABLE COMMUNICATION_OP (opName INTEGER,startNs INTEGER,endNs INTEGER,connectionId INTEGER,groupName INTEGER,
  opId INTEGER PRIMARY KEY,relay INTEGER,retry INTEGER,dataType INTEGER,algType INTEGER,count NUMERIC,opType INTEGER);
CREATE TABLE CANN_API (startNs INTEGER,endNs INTEGER,type INTEGER,globalTid INTEGER,
  connectionId INTEGER PRIMARY KEY,name INTEGER);
CREATE TABLE PYTORCH_API (startNs TEXT,endNs TEXT,globalTid INTEGER,connectionId INTEGER,name INTEGER,
  sequenceNumber INTEGER,fwdThreadId INTEGER,inputDtypes INTEGER,inputShapes INTEGER,callchainId INTEGER,type INTEGER);
CREATE TABLE CONNECTION_IDS (id INTEGER,connectionId INTEGER);
)sql";
constexpr const char* kSteptrace =
    "CREATE TABLE StepTraceTime (step TEXT,computing NUMERIC,communication_not_overlapped NUMERIC,overlapped NUMERIC,"
    "communication NUMERIC,free NUMERIC,stage NUMERIC,bubble NUMERIC,"
    "communication_not_overlapped_and_exclude_receive NUMERIC,preparing NUMERIC)";
constexpr const char* kCommunication = R"sql(
CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT,group_name TEXT,start_timestamp NUMERIC,elapse_time NUMERIC,
  transit_time NUMERIC,wait_time NUMERIC,synchronization_time NUMERIC,idle_time NUMERIC,step TEXT,type TEXT);
CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT,group_name TEXT,transport_type TEXT,transit_size NUMERIC,
  transit_time NUMERIC,bandwidth NUMERIC,large_packet_ratio NUMERIC,package_size NUMERIC,count NUMERIC,
  total_duration NUMERIC,step TEXT,type TEXT);
CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT,group_name TEXT,src_rank TEXT,dst_rank TEXT,transport_type TEXT,
  transit_size NUMERIC,transit_time NUMERIC,bandwidth NUMERIC,step TEXT,type TEXT,op_name TEXT);
)sql";

struct EnumRow {
  const char* table;
  int64_t id;
  const char* name;
};
constexpr EnumRow kEnums[] = {
    {"ENUM_API_TYPE", 5000, "runtime"},
    {"ENUM_API_TYPE", 5500, "communication"},
    {"ENUM_API_TYPE", 10000, "node"},
    {"ENUM_API_TYPE", 15000, "model"},
    {"ENUM_API_TYPE", 20000, "acl"},
    {"ENUM_API_TYPE", 50001, "op"},
    {"ENUM_API_TYPE", 50002, "queue"},
    {"ENUM_API_TYPE", 50003, "trace"},
    {"ENUM_API_TYPE", 50004, "mstx"},
    {"ENUM_HCCL_DATA_TYPE", 0, "INT8"},
    {"ENUM_HCCL_DATA_TYPE", 1, "INT16"},
    {"ENUM_HCCL_DATA_TYPE", 2, "INT32"},
    {"ENUM_HCCL_DATA_TYPE", 3, "FP16"},
    {"ENUM_HCCL_DATA_TYPE", 4, "FP32"},
    {"ENUM_HCCL_DATA_TYPE", 5, "INT64"},
    {"ENUM_HCCL_DATA_TYPE", 6, "UINT64"},
    {"ENUM_HCCL_DATA_TYPE", 7, "UINT8"},
    {"ENUM_HCCL_DATA_TYPE", 8, "UINT16"},
    {"ENUM_HCCL_DATA_TYPE", 9, "UINT32"},
    {"ENUM_HCCL_DATA_TYPE", 10, "FP64"},
    {"ENUM_HCCL_DATA_TYPE", 11, "BFP16"},
    {"ENUM_HCCL_DATA_TYPE", 12, "INT128"},
    {"ENUM_HCCL_DATA_TYPE", 65534, "N/A"},
    {"ENUM_HCCL_DATA_TYPE", 65535, "INVALID_TYPE"},
    {"ENUM_HCCL_LINK_TYPE", 0, "ON_CHIP"},
    {"ENUM_HCCL_LINK_TYPE", 1, "HCCS"},
    {"ENUM_HCCL_LINK_TYPE", 2, "PCIE"},
    {"ENUM_HCCL_LINK_TYPE", 3, "ROCE"},
    {"ENUM_HCCL_LINK_TYPE", 65534, "N/A"},
    {"ENUM_HCCL_LINK_TYPE", 65535, "INVALID_TYPE"},
    {"ENUM_HCCL_TRANSPORT_TYPE", 0, "SDMA"},
    {"ENUM_HCCL_TRANSPORT_TYPE", 1, "RDMA"},
    {"ENUM_HCCL_TRANSPORT_TYPE", 2, "LOCAL"},
    {"ENUM_HCCL_TRANSPORT_TYPE", 65534, "N/A"},
    {"ENUM_HCCL_RDMA_TYPE", 0, "RDMA_SEND_NOTIFY"},
    {"ENUM_HCCL_RDMA_TYPE", 1, "RDMA_SEND_PAYLOAD"},
    {"ENUM_HCCL_RDMA_TYPE", 65535, "INVALID_TYPE"},
    {"ENUM_MSTX_EVENT_TYPE", 0, "marker"},
    {"ENUM_MSTX_EVENT_TYPE", 1, "push/pop"},
    {"ENUM_MSTX_EVENT_TYPE", 2, "start/end"},
    {"ENUM_MSTX_EVENT_TYPE", 3, "marker_ex"},
};

}  // namespace

Status create_tables(const SqliteDb& db, AscendLevel level, bool step_time) {
  TRY_OK(db.run(kAlways));
  if (step_time) TRY_OK(db.run(kSteps));
  if (level != AscendLevel::kNone) TRY_OK(db.run(kWork));
  for (const EnumRow& row : kEnums) {
    SqliteInsert insert(db, row.table, 2);
    insert.integer(row.id).text(row.name).next();
    TRY_OK(insert.status());
  }
  return {};
}

Status create_analysis_tables(const SqliteDb& db, AscendLevel level) {
  TRY_OK(db.run(kSteptrace));
  return level == AscendLevel::kLevel1 ? db.run(kCommunication) : Status{};
}

int64_t Strings::operator()(std::string_view text) {
  const auto [at, fresh] = ids_.try_emplace(std::string(text), static_cast<int64_t>(order_.size()));
  if (fresh) order_.push_back(&at->first);
  return at->second;
}

void Strings::write(SqliteInsert& into) const {
  for (size_t i = 0; i < order_.size(); ++i) into.integer(i).text(*order_[i]).next();
}

}  // namespace stageline::ascend_db
