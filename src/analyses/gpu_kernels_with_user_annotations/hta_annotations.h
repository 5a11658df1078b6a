// Which annotated range HTA says that every kernel belongs to, with --compat hta.
#pragma once

#include "analyses/analysis.h"
#include "profile/torch_view.h"

namespace stageline {

struct AnnotationOptions {
  bool expand = true;   // HTA's columns s_name, s_user_annotation and s_cat
  bool shorten = true;  // names without parameters and template arguments
};

// Returns HTA's table of kernels. Errors: kBadInput where HTA raises, as its rounding makes a duration negative.
Result<Table> hta_annotated_kernels(const TorchRun& run, const AnnotationOptions& options);

}  // namespace stageline
