-- The tables of cluster_analysis.db and the sums over their rows. exporters/cluster_db.cc runs the parts.

-- tables
CREATE TABLE ClusterBaseInfo (key TEXT, value TEXT);
CREATE TABLE HostInfo (hostUid TEXT, hostName TEXT);
CREATE TABLE RankDeviceMap (rankId INTEGER, deviceId INTEGER, hostUid TEXT, profilePath TEXT);
CREATE TABLE CommunicationGroupMapping (type TEXT, rank_set TEXT, group_name TEXT, group_id TEXT, pg_name TEXT);
CREATE TABLE ClusterStepTraceTime (step TEXT, type TEXT, "index" TEXT, computing NUMERIC,
  communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC,
  bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC, dp_index INTEGER,
  pp_index INTEGER, tp_index INTEGER);
CREATE TABLE ClusterCommunicationTime (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
  start_timestamp REAL, elapsed_time REAL, transit_time REAL, wait_time REAL, synchronization_time REAL, idle_time REAL,
  synchronization_time_ratio REAL, wait_time_ratio REAL);
CREATE TABLE ClusterCommunicationBandwidth (step TEXT, rank_id INTEGER, hccl_op_name TEXT, group_name TEXT,
  band_type TEXT, transit_size REAL, transit_time REAL, bandwidth REAL, large_packet_ratio, package_size REAL,
  count INTEGER, total_duration REAL);
CREATE TABLE ClusterCommunicationMatrix (step TEXT, hccl_op_name TEXT, group_name TEXT, src_rank REAL, dst_rank REAL,
  transport_type TEXT, op_name TEXT, transit_size REAL, transit_time REAL, bandwidth REAL);

-- totals
-- An operation has one size on a transport, which each of its rows repeats.
INSERT INTO ClusterCommunicationTime SELECT step, rank_id, 'Total Op Info', group_name, 0, plain_sum(elapsed_time),
  plain_sum(transit_time), plain_sum(wait_time), plain_sum(synchronization_time), plain_sum(idle_time),
  ROUND(IFNULL(plain_sum(synchronization_time) /
    NULLIF(plain_sum(synchronization_time) + plain_sum(transit_time), 0), 0), 4),
  ROUND(IFNULL(plain_sum(wait_time) / NULLIF(plain_sum(wait_time) + plain_sum(transit_time), 0), 0), 4)
  FROM ClusterCommunicationTime GROUP BY step, rank_id, group_name;
INSERT INTO ClusterCommunicationBandwidth SELECT sizes.step, sizes.rank_id, 'Total Op Info', sizes.group_name,
  sizes.band_type, all_ops.size, all_ops.time, ROUND(IFNULL(all_ops.size / NULLIF(all_ops.time, 0), 0), 4), 0,
  sizes.package_size, SUM(sizes.count), plain_sum(sizes.total_duration)
  FROM ClusterCommunicationBandwidth sizes JOIN (
    SELECT step, rank_id, group_name, band_type, plain_sum(transit_size) size, plain_sum(transit_time) time FROM (
      SELECT DISTINCT step, rank_id, hccl_op_name, group_name, band_type, transit_size, transit_time
      FROM ClusterCommunicationBandwidth) GROUP BY step, rank_id, group_name, band_type) all_ops
  USING (step, rank_id, group_name, band_type)
  GROUP BY sizes.step, sizes.rank_id, sizes.group_name, sizes.band_type, sizes.package_size;
INSERT INTO ClusterCommunicationMatrix SELECT step, 'Total Op Info', group_name, src_rank, dst_rank, transport_type, '',
  plain_sum(transit_size), plain_sum(transit_time),
  IFNULL(plain_sum(transit_size) / NULLIF(plain_sum(transit_time), 0), 0)
  FROM ClusterCommunicationMatrix WHERE hccl_op_name LIKE '%total%'
  GROUP BY step, group_name, src_rank, dst_rank, transport_type;

-- stages
-- A stage has the maximum of every column over its ranks.
INSERT INTO ClusterStepTraceTime SELECT step, 'stage', ranks, MAX(computing), MAX(communication_not_overlapped),
  MAX(overlapped), MAX(communication), MAX(free), MAX(stage), MAX(bubble),
  MAX(communication_not_overlapped_and_exclude_receive), MAX(preparing), 'NA', 'NA', 'NA'
  FROM ClusterStepTraceTime JOIN (
    SELECT pp_index place, '(' || GROUP_CONCAT("index", ',') || ')' ranks FROM (
      SELECT DISTINCT pp_index, "index" FROM ClusterStepTraceTime ORDER BY CAST("index" AS INTEGER)) GROUP BY pp_index)
  ON place = pp_index GROUP BY step, pp_index;
