// Reads the names of lines, planes and events in profiles of XLA and TensorFlow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stageline::xplane {

// Spells a frame as Kineto does: "$profiler.py:151 start_trace" → "profiler.py(151): start_trace".
std::string frame_name(std::string_view name);
// Spells a copy as Kineto does: "MemcpyH2D" → "Memcpy HtoD".
std::string copy_name(std::string_view name);

// Returns the number after "key:" in "regs:32 grid:8,1,1 block:256,1,1 occ_pct:75".
std::string_view detail(std::string_view details, std::string_view key);

bool is_api_call(std::string_view name);
// Returns true for the name of an operator as TensorFlow's executor gives it, "NAME:TYPE": "dense/MatMul:_MklMatMul".
bool is_tf_operator(std::string_view name);
// Returns true for spans in which the thread of Python waits for TensorFlow's executor.
bool waits_for_executor(std::string_view name);
// Returns true for names of XLA's own spans, as opposed to those that a program's author wrote.
bool is_internal(std::string_view name);

// A device's name in parts: "/device:GPU:3", "/device:TPU:0 SparseCore 1" → kind, number, the rest.
struct DeviceName {
  std::string kind, rest;
  int64_t number = -1;
};
std::optional<DeviceName> device_of(std::string_view plane);

// Returns true for a line that repeats in other terms what other lines of its device have.
bool is_derived(std::string_view line);
// Returns the number in "Stream #16(MemcpyH2D)", 16.
int64_t stream_number(const std::string& line);

}  // namespace stageline::xplane
