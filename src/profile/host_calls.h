// Calls of the driver, the runtime and message libraries, recognised by their names.
#pragma once

#include <string_view>

namespace stageline {

bool is_allocator_call(std::string_view name);  // allocates or frees memory of the device, or pinned memory
bool is_waiting_call(std::string_view name);    // may return only when work of the device has ended
bool is_copy_call(std::string_view name);
bool is_host_message(std::string_view name);  // of MPI or gloo

}  // namespace stageline
