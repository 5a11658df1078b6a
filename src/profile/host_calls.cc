#include "profile/host_calls.h"

#include "base/name_pattern.h"

namespace stageline {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool is_copy_call(std::string_view name) { return contains(name, "Memcpy") || contains(name, "memcpy"); }

bool is_allocator_call(std::string_view name) {
  static const AnyOf parts({"alloc", "Alloc", "HostRegister", "HostUnregister", "cuMemCreate", "cuMemMap", "cuMemUnmap",
                            "cuMemRelease", "cuMemSetAccess", "cuMemAddress", "aclrtFree"});
  return name.starts_with("cudaFree") || name.starts_with("hipFree") || name.starts_with("cuMemFree") || parts.in(name);
}

bool is_host_message(std::string_view name) {
  const bool mpi = name.starts_with("MPI_") && !name.starts_with("MPI_Init") && !name.starts_with("MPI_Finalize");
  return mpi || name.starts_with("gloo:") || name.starts_with("mpi:");
}

bool is_waiting_call(std::string_view name) {
  if (contains(name, "Synchronize")) return true;
  if (name == "cudaFree" || name == "hipFree" || name == "cudaFreeHost" || name == "hipHostFree") return true;
  return is_copy_call(name);  // also *Async copies: from pageable memory they block
}

}  // namespace stageline
