-- The tables of an Ascend profiler database, as in schema 1.2.0, and what its enumerations mean.
-- exporters/ascend_db/rank_rows.cc runs the parts, each from its name to the next blank line.

-- always
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

-- steps
CREATE TABLE STEP_TIME (id INTEGER,startNs INTEGER,endNs INTEGER);

-- work
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

-- enumerations
INSERT INTO ENUM_API_TYPE VALUES
  (5000,'runtime'), (5500,'communication'), (10000,'node'), (15000,'model'), (20000,'acl'), (50001,'op'),
  (50002,'queue'), (50003,'trace'), (50004,'mstx');
INSERT INTO ENUM_HCCL_DATA_TYPE VALUES
  (0,'INT8'), (1,'INT16'), (2,'INT32'), (3,'FP16'), (4,'FP32'), (5,'INT64'), (6,'UINT64'), (7,'UINT8'),
  (8,'UINT16'), (9,'UINT32'), (10,'FP64'), (11,'BFP16'), (12,'INT128'), (65534,'N/A'),
  (65535,'INVALID_TYPE');
INSERT INTO ENUM_HCCL_LINK_TYPE VALUES
  (0,'ON_CHIP'), (1,'HCCS'), (2,'PCIE'), (3,'ROCE'), (65534,'N/A'), (65535,'INVALID_TYPE');
INSERT INTO ENUM_HCCL_TRANSPORT_TYPE VALUES
  (0,'SDMA'), (1,'RDMA'), (2,'LOCAL'), (65534,'N/A');
INSERT INTO ENUM_HCCL_RDMA_TYPE VALUES
  (0,'RDMA_SEND_NOTIFY'), (1,'RDMA_SEND_PAYLOAD'), (65535,'INVALID_TYPE');
INSERT INTO ENUM_MSTX_EVENT_TYPE VALUES
  (0,'marker'), (1,'push/pop'), (2,'start/end'), (3,'marker_ex');

-- step trace
CREATE TABLE StepTraceTime (step TEXT,computing NUMERIC,communication_not_overlapped NUMERIC,overlapped NUMERIC,communication NUMERIC,free NUMERIC,stage NUMERIC,bubble NUMERIC,communication_not_overlapped_and_exclude_receive NUMERIC,preparing NUMERIC);

-- communication
CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT,group_name TEXT,start_timestamp NUMERIC,elapse_time NUMERIC,
  transit_time NUMERIC,wait_time NUMERIC,synchronization_time NUMERIC,idle_time NUMERIC,step TEXT,type TEXT);
CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT,group_name TEXT,transport_type TEXT,transit_size NUMERIC,
  transit_time NUMERIC,bandwidth NUMERIC,large_packet_ratio NUMERIC,package_size NUMERIC,count NUMERIC,
  total_duration NUMERIC,step TEXT,type TEXT);
CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT,group_name TEXT,src_rank TEXT,dst_rank TEXT,transport_type TEXT,
  transit_size NUMERIC,transit_time NUMERIC,bandwidth NUMERIC,step TEXT,type TEXT,op_name TEXT);
