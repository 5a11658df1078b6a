#include "cli/commands.h"
#include "cli/open_run.h"
#include "compat/paddle_timeline/paddle_timeline.h"

namespace stageline {

Result<int> run_paddle_timeline(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY_OK(check_compat(arguments, "paddle-v3"));
  PaddleTimelineOptions options;
  options.log_dir = arguments.get("log-dir");
  if (options.log_dir.empty())
    return make_error(ErrorCode::kUsage, "paddle-timeline needs --log-dir", "the folder that holds workerlog.0");
  if (arguments.has("devices")) {
    // The order matters here, because rows come in it. So this is a plain list as in Paddle's script; only ranges are
    // an addition.
    TRY(devices, arguments.numbers("devices", true));
    options.devices = std::move(*devices);
  }
  options.multi_machine = arguments.has("multi-machine");
  options.compat_v3 = arguments.has("compat");
  TRY_OK(take_limits(arguments));
  Result<PaddleTimeline> done = [&] {
    ProgressBar bar(*terminal, "progress.converting");
    options.progress = bar.progress();
    return write_paddle_timeline(options);
  }();
  if (!done) return std::move(done).error();
  print_notes(*terminal, done->diagnostics, options.log_dir);
  note(*terminal, grouped(done->jobs) + " jobs of " + grouped(done->logs) + (done->logs == 1 ? " log" : " logs") +
                      (done->machines > 1 ? " on " + grouped(done->machines) + " machines" : "") + ", " +
                      grouped(done->steps) + (done->steps == 1 ? " step" : " steps") + "\n" + done->chrome_path + "\n" +
                      done->perfetto_path);
  return kExitGood;
}

}  // namespace stageline
