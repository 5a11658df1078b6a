"""The cases for msprof-analyze and `pp-chart --compat msprof`: how the profile is made, the changes of its databases,
the flags."""
import pathlib
import shutil
import sqlite3
from typing import NamedTuple


class Case(NamedTuple):
    generated: str = ''  # arguments of ../shared/tools/gen_ascend.py
    simulated: str = ''  # or of stageline simulate --format ascend
    sql: tuple = ()  # for every database
    sql_of: dict = {}  # rank → for that one
    flags: str = ''  # both programs understand them


DUALPIPEV = '--schedule dualpipev --pp 4 --mb 10 --pp-info '
ONE_F_ONE_B = '--schedule 1f1b --pp 4 --mb 6 '
# Rows that a query of both sides finds by a word of their message.
MARKED = "connectionId IN (SELECT m.connectionId FROM MSTX_EVENTS m JOIN STRING_IDS s ON s.id = m.message WHERE s.value LIKE '%{}%' "
SET_INFO = "UPDATE META_DATA SET value = '{}' WHERE name = 'pp_info'"
SET_SIZE = "UPDATE META_DATA SET value = json_set(value, '$.{}', {}) WHERE name = 'distributed_args'"
ADD_TEXT = "INSERT INTO STRING_IDS SELECT max(id) + 1, '{}' FROM STRING_IDS"
# A range of that last text, around the first two ranges of the rank on host and device.
ADD_RANGE = ('INSERT INTO MSTX_EVENTS SELECT min(startNs), min(startNs) + 1000, 2, 4294967295, 4294967295, (SELECT max(id) FROM STRING_IDS), '
             'max(globalTid), max(globalTid), max(domainId), 4009999999 FROM MSTX_EVENTS',
             'INSERT INTO TASK (startNs, endNs, connectionId, globalTaskId, streamId) '
             'SELECT min(startNs) + 5000, min(endNs) + 9000000, 4009999999, 999999, 2 FROM TASK')

CASES = {
    # Sizes and layouts
    'dualpipev_dp2_tp2': Case('--schedule dualpipev --pp 4 --mb 11 --level 1 --pp-info --dp 2 --tp 2'),
    'dualpipev_cp2': Case('--schedule dualpipev --pp 2 --mb 9 --cp 2 --level 1 --pp-info'),
    'dualpipev_one_stage': Case('--schedule dualpipev --pp 1 --mb 5 --pp-info'),
    'dualpipev_2x5': Case('--schedule dualpipev --pp 2 --mb 5 --pp-info --steps 3'),
    'dualpipev_3x7': Case('--schedule dualpipev --pp 3 --mb 7 --pp-info --jitter 0.3'),
    'dualpipev_6x13_dp2': Case('--schedule dualpipev --pp 6 --mb 13 --pp-info --dp 2 --level 1'),
    'dualpipev_8x16': Case('--schedule dualpipev --pp 8 --mb 16 --pp-info --steps 3'),
    'dualpipev_cp2_dp2_tp2': Case('--schedule dualpipev --pp 2 --mb 6 --cp 2 --dp 2 --tp 2 --pp-info'),
    'dualpipev_ep4': Case('--schedule dualpipev --pp 2 --mb 6 --dp 4 --level 1 --pp-info', sql=(SET_SIZE.format('expert_model_parallel_size', 4),)),
    'dualpipev_tp_pp_dp': Case(simulated='dualpipe-v-mindspeed --stages 4 --micro-batches 9 --tp 2 --dp 2 --order tp-pp-dp --pp-info --level 1'),
    'dualpipev_tp_dp_cp_pp': Case(simulated='dualpipe-v-mindspeed --stages 2 --micro-batches 8 --tp 2 --cp 2 --dp 2 --order tp-dp-cp-pp --pp-info'),
    '1f1b_cp2_tp2': Case('--schedule 1f1b --pp 3 --mb 7 --level 1 --cp 2 --tp 2'),
    '1f1b_tp_pp_dp': Case(simulated='1f1b --stages 4 --micro-batches 5 --tp 2 --dp 2 --order tp-pp-dp --level 1'),
    '1f1b_skewed': Case('--schedule 1f1b --pp 16 --mb 16 --level 1 --skew-ns 5000000'),
    '1f1b_bulk': Case('--schedule 1f1b --pp 2 --mb 4 --bulk 5000'),
    'vpp': Case(simulated='vpp --stages 4 --chunks 2 --micro-batches 8 --level 1'),
    # The vendor's advice covers these.
    'dualpipev_detached': Case('--schedule dualpipev --pp 4 --mb 8 --pp-info --dw-detach --level 1'),
    'dualpipev_detached_no_info': Case('--schedule dualpipev --pp 4 --mb 8 --dw-detach --level 1'),
    'dualpipev_empty_pops': Case(DUALPIPEV + '--empty-pop --level 1'),
    'dualpipev_detached_empty_pops': Case(DUALPIPEV + '--dw-detach --empty-pop'),
    'dualpipev_helper': Case(simulated='dualpipe-v-mindspeed --stages 4 --micro-batches 10 --pp-info --marks helper --level 1'),
    # Steps
    'dualpipev_no_steps': Case('--schedule dualpipev --pp 4 --mb 8 --pp-info --no-step-time --steps 1'),
    'dualpipev_no_steps_of_two': Case('--schedule dualpipev --pp 4 --mb 9 --pp-info --no-step-time --steps 2'),
    'dualpipev_step_missing': Case(DUALPIPEV + '--steps 3', sql=('DELETE FROM STEP_TIME WHERE id = 11',)),
    'dualpipev_steps_backwards': Case(DUALPIPEV + '--steps 3', sql=('UPDATE STEP_TIME SET id = 100 - id',)),
    'dualpipev_steps_of_one_number': Case(DUALPIPEV, sql=('UPDATE STEP_TIME SET id = 10',)),
    'dualpipev_steps_overlap': Case(DUALPIPEV, sql=('UPDATE STEP_TIME SET startNs = startNs - 60000000 WHERE id = 11',)),
    '1f1b_steps_overlap': Case(ONE_F_ONE_B, sql=('UPDATE STEP_TIME SET startNs = startNs - 60000000 WHERE id = 11',)),
    '1f1b_step_without_number': Case(ONE_F_ONE_B, sql=('UPDATE STEP_TIME SET id = NULL WHERE id = 11',)),
    # Micro-batches that are not those of pp_info, and steps that differ.
    'dualpipev_uneven_steps': Case(DUALPIPEV + '--steps 3', sql=(
        'DELETE FROM MSTX_EVENTS WHERE ' + MARKED.format('backward') + 'ORDER BY m.startNs DESC LIMIT 2)',)),
    'dualpipev_uneven_ranks': Case(DUALPIPEV, sql_of={2: (
        'DELETE FROM MSTX_EVENTS WHERE ' + MARKED.format('forward') + 'ORDER BY m.startNs LIMIT 1 OFFSET 5)',)}),
    'dualpipev_more_in_info': Case(DUALPIPEV, sql=(SET_INFO.format('{"pp_type":"DualPipeV","microbatch_num":12}'),)),
    'dualpipev_text_in_info': Case(DUALPIPEV, sql=(SET_INFO.format('{"pp_type":"dualpipev","microbatch_num":"10"}'),)),
    'dualpipev_no_number_in_info': Case(DUALPIPEV, sql=(SET_INFO.format('{"pp_type":"dualpipev"}'),)),
    'dualpipev_no_json_in_info': Case(DUALPIPEV, sql=(SET_INFO.format('dualpipev'),)),
    'dualpipev_sizes_as_text': Case(DUALPIPEV, sql=(SET_SIZE.format('pipeline_model_parallel_size', "'4'"),)),
    'dualpipev_no_sizes': Case(DUALPIPEV, sql=("UPDATE META_DATA SET value = '{}' WHERE name = 'distributed_args'",)),
    # Ranges
    '1f1b_two_tasks_of_a_range': Case(ONE_F_ONE_B, sql=(
        'INSERT INTO TASK SELECT startNs + 100, endNs - 100, deviceId, connectionId, globalTaskId + 500000, globalPid, taskType, contextId, '
        'streamId, taskId, modelId FROM TASK WHERE connectionId IN (SELECT connectionId FROM MSTX_EVENTS ORDER BY startNs LIMIT 3)',)),
    '1f1b_nested': Case(ONE_F_ONE_B, sql=(ADD_TEXT.format('我的 FORWARD pass'), *ADD_RANGE)),
    'dualpipev_nested': Case(DUALPIPEV, sql=(ADD_TEXT.format('weightgradstore+POP'), *ADD_RANGE)),
    '1f1b_no_message': Case(ONE_F_ONE_B, sql=('UPDATE MSTX_EVENTS SET message = NULL WHERE rowid % 7 = 3',)),
    '1f1b_no_task': Case(ONE_F_ONE_B, sql=('UPDATE MSTX_EVENTS SET connectionId = 4000000000 WHERE rowid % 5 = 2',)),
    # Sends and receives
    '1f1b_level0': Case(simulated='1f1b --stages 4 --micro-batches 5 --level 0'),
    '1f1b_batches': Case(simulated='1f1b --stages 4 --micro-batches 5 --level 1 --p2p batch'),
    '1f1b_lost_head': Case(ONE_F_ONE_B + '--level 1', sql_of={0: (
        'DELETE FROM COMMUNICATION_OP WHERE opId IN (SELECT opId FROM COMMUNICATION_OP ORDER BY startNs LIMIT 3)',)}),
    '1f1b_links_of_before': Case(ONE_F_ONE_B + '--level 1', sql=(
        'ALTER TABLE COMMUNICATION_OP ADD COLUMN opConnectionId TEXT', "UPDATE COMMUNICATION_OP SET opConnectionId = 'old'",
        "UPDATE COMMUNICATION_TASK_INFO SET groupName = (SELECT min(id) FROM STRING_IDS) WHERE opId % 4 = 1")),
    '1f1b_two_peers': Case(ONE_F_ONE_B + '--level 1', sql=(
        "UPDATE COMMUNICATION_TASK_INFO SET dstRank = dstRank + 1 WHERE opId % 3 = 1 AND rowid % 2 = 0",)),
    '1f1b_uncalled': Case(ONE_F_ONE_B + '--level 1', sql=('DELETE FROM CANN_API WHERE rowid % 5 = 2',)),
    '1f1b_no_device_map': Case(ONE_F_ONE_B + '--level 1', sql=('DELETE FROM RANK_DEVICE_MAP',)),
    '1f1b_two_devices': Case(ONE_F_ONE_B + '--level 1', sql=('INSERT INTO RANK_DEVICE_MAP VALUES (77, 7)',)),
    '1f1b_level_none_plain': Case(ONE_F_ONE_B + '--level-none-comm plain'),
    '1f1b_level_none_escaped': Case(ONE_F_ONE_B + '--level-none-comm escaped'),
    'dualpipev_level_none_dp2': Case(DUALPIPEV + '--dp 2 --level-none-comm escaped'),
    '1f1b_level_none_na': Case(ONE_F_ONE_B + '--level-none-comm plain', sql=("DELETE FROM ENUM_HCCL_DATA_TYPE WHERE name = 'BFP16'",)),
    '1f1b_level_none_no_types': Case(ONE_F_ONE_B + '--level-none-comm plain', sql=('DELETE FROM ENUM_HCCL_DATA_TYPE',)),
    # Options
    'dualpipev_ranks': Case(DUALPIPEV + '--level 1', flags='--rank_list 1,3'),
    'dualpipev_step_id': Case(DUALPIPEV + '--level 1', flags='--step_id 11'),
    'dualpipev_step_id_pops': Case(DUALPIPEV + '--dw-detach', flags='--step_id 10'),
    '1f1b_step_id': Case(ONE_F_ONE_B + '--level 1', flags='--step_id 11'),
    '1f1b_step_id_level_none': Case(ONE_F_ONE_B + '--level-none-comm escaped', flags='--step_id 10'),
    '1f1b_step_id_not_there': Case(ONE_F_ONE_B + '--level 1', flags='--step_id 99'),
    '1f1b_mindspore': Case(simulated='1f1b --stages 4 --micro-batches 5 --level 1 --framework mindspore'),
}


def alter(path, statements):
    db = sqlite3.connect(path)
    for sql in statements:
        db.execute(sql)
    db.commit()
    db.close()


def copy_of(folder, to):
    shutil.copytree(folder, to)
    return pathlib.Path(to)
