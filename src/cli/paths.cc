#include "cli/paths.h"

#include <stdlib.h>
#include <unistd.h>

#include "readers/source.h"

namespace stageline {

Result<std::vector<std::string>> real_folders(const std::vector<std::string>& named, const char* flag) {
  std::vector<std::string> out;
  for (const std::string& folder : named) {
    char* const real = realpath(folder.c_str(), nullptr);
    if (!real)
      return make_error(ErrorCode::kNotFound, "there is no such folder", std::string("--") + flag + " names one",
                        {folder});
    out.emplace_back(real);
    free(real);
  }
  return out;
}

Result<OutputFile> open_output(const std::string& path, const std::vector<std::string>& inputs) {
  // OutputFile refuses to write over a file that was listed as an input. A new file is none.
  if (path != "-" && access(path.c_str(), F_OK) == 0)
    for (const std::string& input : inputs)
      if (!input.empty()) std::ignore = scan_source({input});  // its error is reported when it is read
  return OutputFile::create(path);
}

Status check_writable(const std::string& path, const std::vector<std::string>& inputs) {
  TRY(file, open_output(path, inputs));
  return {};
}

std::string run_name(const std::vector<std::string>& paths) {
  if (paths.empty()) return "run";
  std::string name = file_name(paths[0]);
  if (name == "." || name == ".." || name.empty()) name = "run";
  for (const char* suffix : {".gz", ".zst", ".json", ".csv"})
    if (name.ends_with(suffix) && name.size() > std::string_view(suffix).size())
      name.resize(name.size() - std::string_view(suffix).size());
  if (paths.size() > 1) name += " + " + std::to_string(paths.size() - 1) + " more";
  return name;
}

}  // namespace stageline
