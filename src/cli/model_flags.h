// The model that flags describe, and the memory of its ranks: for the command plan, and for those that judge the memory
// of a schedule or of a run.
#pragma once

#include "cli/flags.h"
#include "diagnosis/what_if/stage_bytes.h"
#include "plan/search.h"

namespace stageline {

struct Trace;

inline constexpr size_t kMaxModelBytes = size_t{16} << 20;  // of a description, or of a device's

// Reads a size with its unit: 80GiB, 80GB, 512MiB, 512MB, 1000B. Returns nullopt for others, and from 10^18 bytes on.
std::optional<double> parse_size(std::string_view text);
// Reads "7,8*14,7": the layers of each virtual stage, `min` at least. Errors: kUsage naming the flag.
Result<std::vector<int32_t>> parse_split(const std::string& text, const char* flag, int32_t min);

// Puts a flag that is a number from `min` to `max` into `into`, which stays as it is when the flag was not given.
Status take_share(const Arguments& arguments, const char* flag, double min, double max, double& into);
// Takes the flags of memory: optimizer, types of numbers, precision, attention, limits. Expects the wish's framework.
Status take_memory(const Arguments& arguments, plan::Wish& wish);

// Reads a description from a file or, where one is given, from `text`. `tied`: embedding and head share weights,
// whatever it says. Errors: kBadInput naming the key, and for more parameters than a step can be computed of.
Result<plan::Model> described_model(const std::string& path, std::string text, bool tied);

// The bytes of a pipeline's stages, where --model describes what runs. `dp`: its replicas. Errors: kUsage for --memory
// without --model; those of reading the description.
Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, int32_t dp, const std::string& model = "");
// Returns the same for a run, with its replicas and the memory that it measured. `model`: the text of the description;
// "": it is read from the file that --model names.
Result<std::optional<StageBytes>> stage_bytes_of(const Arguments& arguments, const Trace& ran,
                                                 const std::string& model = "");

}  // namespace stageline
