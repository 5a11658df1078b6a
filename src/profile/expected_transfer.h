// The expected time of a collective on a given fabric: the minimum that wires allow, NCCL's own estimate, and what
// follows for a measured time. Definitions, sources and limits: docs/analyses/communication.md.
#pragma once

#include "model/collective_kind.h"

namespace stageline {

// The links between the devices of a host (or of an NVLink domain). Rates are in GB/s, of one device and one direction.
struct Fabric {
  enum class Chips : uint8_t { kVolta, kAmpere, kHopper, kBlackwell, kOther };
  std::string_view name;   // "nvlink4"
  double peak_gbps = 0;    // of all links of a device
  double tuner_gbps = 0;   // what NCCL reckons with
  double pair_gbps = 0;    // between two devices, where links are a mesh; 0: all of them
  double switch_gbps = 0;  // measured bus rate of an all-reduce inside switches; 0: none is known
  Chips chips = Chips::kOther;
  // Switches reduce, so each device sends and receives a message once.
  bool reduces_inside() const { return chips == Chips::kHopper || chips == Chips::kBlackwell; }
};

const Fabric* find_fabric(std::string_view name);  // nullptr: no such name
// By the device's name. Boards for PCIe and parts of devices have none: bridges are not in the name.
const Fabric* fabric_of_device(std::string_view device);
// Links of these devices reach other hosts of their rack, so hosts are not the domains of fast links.
bool spans_hosts(std::string_view device);

struct TransferRoute {
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t ranks = 0, hosts = 1;  // hosts: domains of fast links
  const Fabric* fabric = nullptr;
  double nic_gbps = 0;  // of the network, for each device; 0: unknown
  bool known() const { return fabric != nullptr && ranks > 1 && hosts >= 1 && (hosts == 1 || nic_gbps > 0); }
};

// Times in ns for a message of that number of bytes; the route must be known. `wire`: rings or pairs at peak rates.
// `bound`: nothing can be faster. `expected`: NCCL 2.30's estimate, the best of its algorithms and protocols.
double wire_ns(const TransferRoute& route, int64_t bytes);
double bound_ns(const TransferRoute& route, int64_t bytes);
double expected_ns(const TransferRoute& route, int64_t bytes);

enum class TransferVerdict : uint8_t { kImpossible, kNormal, kSlow, kSmall, kUnknown };
std::string_view verdict_name(TransferVerdict verdict);
// `small`: start-up and launches decide at this size, so nothing is judged.
TransferVerdict judge_transfer(const TransferRoute& route, int64_t bytes, int64_t took_ns);

}  // namespace stageline
