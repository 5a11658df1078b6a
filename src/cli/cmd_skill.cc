// Runs stageline skill: writes the instructions for using this program, as files that agents load.
#include <filesystem>

#include "base/embedded.h"
#include "base/output_file.h"
#include "cli/commands.h"

namespace stageline {

Result<int> run_skill(const Arguments& arguments) {
  constexpr std::string_view kPrefix = "skill/";
  const std::vector<std::string> names = embedded_names(kPrefix);
  if (!arguments.has("install")) {
    const std::string text = embedded_file("skill/SKILL.md");
    fwrite(text.data(), 1, text.size(), stdout);
    return kExitGood;
  }
  const std::filesystem::path folder = std::filesystem::path(arguments.get("install")) / "stageline";
  OutputSet together;
  for (const std::string& name : names) {
    const std::filesystem::path path = folder / name.substr(kPrefix.size());
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return make_error(ErrorCode::kIo, "the folder cannot be made: " + error.message(), "",
                        {path.parent_path().string()});
    TRY(out, OutputFile::create(path.string()));
    out->write(embedded_file(name));
    TRY_OK(out->commit());
  }
  TRY_OK(together.commit());
  printf("%s  %zu files\n", terminal_text((folder / "SKILL.md").string()).c_str(), names.size());
  return kExitGood;
}

}  // namespace stageline
