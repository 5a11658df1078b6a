// tb-module as msprof-analyze answers it (--compat msprof, its mode module_statistic).
#pragma once

#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

Table msprof_module_statistic(const TorchRun& run);

}  // namespace stageline
