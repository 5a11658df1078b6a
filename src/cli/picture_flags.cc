#include "cli/picture_flags.h"

namespace stageline {

Ghosts ghosts_of(const Arguments& arguments) {
  const std::string wish = arguments.get("ghosts");
  return wish == "on" ? Ghosts::kOn : wish == "off" ? Ghosts::kOff : Ghosts::kAuto;
}

Result<ExportOptions> picture_options(const Arguments& arguments, const std::string& lang, const std::string& title) {
  TRY_OK(check_choice(arguments, "ghosts"));
  ExportOptions options{
      .lang = lang, .dark = arguments.has("dark"), .title = valid_utf8(arguments.get("title", title))};
  TRY(width, arguments.real("width", 0));
  if (arguments.has("width") && !(*width >= 200 && *width <= 32'000))
    return make_error(ErrorCode::kUsage, "--width is 200 to 32000 pixels");
  options.width_px = *width;
  return options;
}

}  // namespace stageline
