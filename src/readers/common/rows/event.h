// One event of a Chrome trace, with the fields that Stageline needs.
#pragma once

#include <cstdint>
#include <string_view>

namespace stageline::rows {

// Views are valid until the next event is parsed.
struct Event {
  char phase = '\0';
  char binding = '\0';  // the member bp: "e" binds the end of a flow to the enclosing slice
  bool has_cat = false, has_ts = false, has_dur = false;
  bool fractional_ts = false;  // the time was written with a point or an exponent, or is missing
  bool has_collective = false, has_memory = false, has_copy = false, has_sync = false, has_operator = false;
  bool has_python = false, has_inputs = false, has_launch_shape = false, has_stack = false;
  std::string_view cat, name, pid, tid, id;
  int64_t ts_ns = 0, dur_ns = 0;

  // Arguments under Kineto's names; −1 and "" when absent.
  int64_t stream = -1;  // "stream": a number, or a text that is a number; anything else gives −1, as in HTA
  int64_t correlation = -1;
  int64_t external_id = -1;
  int64_t bytes = -1;
  double bandwidth_gbps = 0;
  int64_t wait_on_stream = -1, wait_on_record = -1;
  int64_t python_id = -1, python_parent = -1, python_module = -1;
  int64_t sequence_number = -1, forward_thread = -1;
  std::string_view collective, dtype, group, group_description, group_ranks, in_split, out_split, comms_id;
  int64_t in_elements = 0, out_elements = 0, group_size = 0, peer = -1, src_rank = -1, dst_rank = -1, seq = -1;
  int64_t address = 0, total_allocated = -1, total_reserved = -1, device_type = 0, device_id = -1;
  std::string_view input_dims, input_types, concrete_inputs, call_stack, module_hierarchy;
  std::string_view grid, block, blocks_per_sm, warps_per_sm, occupancy;
  int64_t registers = -1, shared_bytes = -1;
  int64_t exact_start_ns = -1;            // Paddle's "start_time", from the writer's own zero
  int64_t begin_ns = -1, length_ns = -1;  // rocprof's, whose ts and dur are whole microseconds
  int64_t step_number = -1;               // JAX's and TensorFlow's "step_num"
  int64_t rank = -1, raw_pid = -1;        // TraceFuse's: the rank of an event, and its process before the merge
  // Of work of a CUDA graph: the graph, its node (torch has the graph in the high 32 bits, Cuspy has not), its mark
  // (torch.cuda.graph_annotations), and the stream it was moved from.
  int64_t graph = -1, graph_node = -1, original_stream = -1;
  std::string_view node_name;
  std::string_view args;  // text of the args object, for metadata and counters
};

}  // namespace stageline::rows
