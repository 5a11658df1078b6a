// The arguments of an event that Stageline keeps, by Kineto's names, and how they are stored.
#pragma once

#include "base/vocabulary.h"

namespace stageline::rows {

// One event of a Chrome trace, with the fields that Stageline needs. Views are valid until the next event is parsed.
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
  std::string_view place;                                // Paddle's: "Place(gpu:0)"
  std::string_view copy_kind, copy_source, copy_target;  // Cuspy's, whose copies are all "Memcpy": HtoD, pinned, device
  std::string_view args;                                 // text of the args object, for metadata and counters
};

enum class ArgKey : uint8_t {
  kNone,
#define ARG(key, name, field) k##key,
#define ALSO(key, name)
#include "readers/common/rows/arg_keys.def"
};

ArgKey arg_key(std::string_view name);

// Where an event keeps an argument: as a number or as a text, or neither.
struct ArgField {
  int64_t Event::* number = nullptr;
  std::string_view Event::* text = nullptr;
  bool Event::* mark = nullptr;  // becomes true when the argument is there; has_stack only with a text
  int64_t otherwise = -1;        // the number of a text that is none
  bool array = false;            // arrays are kept as text; arrays and objects of all other arguments are skipped
};
const ArgField& arg_field(ArgKey key);
// Stores an argument. `text` is its value as written (strings without quotes and escapes, arrays with brackets, null as
// "").
void set_arg(ArgKey key, std::string_view text, Event& event);
// Stores an argument that came as a whole number, as set_arg() stores the number's text. Returns false, and stores
// nothing, where the argument is a text or a fraction.
bool set_number(ArgKey key, int64_t value, Event& event);

}  // namespace stageline::rows
