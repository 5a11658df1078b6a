// Paths on the command line: where output goes, folders that flags name, and the input's name for titles.
#pragma once

#include "base/output_file.h"

namespace stageline {

// Opens `path` before long work is done. Errors: those of OutputFile::create(). `inputs` are the paths and folders as
// given; their files are listed, so that `path` is refused when it is one of them.
Result<OutputFile> open_output(const std::string& path, const std::vector<std::string>& inputs);
// Checks the same for a file that is opened later.
Status check_writable(const std::string& path, const std::vector<std::string>& inputs);

// Returns the real paths of folders that a flag names. Errors: kNotFound.
Result<std::vector<std::string>> real_folders(const std::vector<std::string>& named, const char* flag);

// Returns the name of the input for titles: "run42" or "run42 + 3 more".
std::string run_name(const std::vector<std::string>& paths);

}  // namespace stageline
