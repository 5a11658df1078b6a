// Chrome traces of other profilers than Kineto, in Kineto's words.
#pragma once

#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

// Returns true for what paddle.profiler wrote (export_chrome_tracing).
bool is_paddle(const std::vector<MetaField>& metadata);

// Gives rows the names, categories, threads and times that Kineto would:
//
//   Paddle    "matmul dygraph[0.300 ms]" → "matmul dygraph"; ProfileStep#3 → ProfilerStep#3; CudaRuntime →
//   cuda_runtime;
//             "19492(Python)" and "19492(C++)" are one thread; times to the nanosecond
//   JAX, TensorFlow, rocprof, rpd: no categories; processes named "/device:GPU:0", "GPU0" or "COPY" are devices, calls
//             with a correlation are launches, "$file.py:3 f" is a frame
//
// To be called once all rows of a file are there, before build_part().
void translate(FileRows& rows);

}  // namespace stageline::rows
