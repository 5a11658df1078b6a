// An opened run as Python holds it, and the questions to it.
#pragma once

#include "python_api.h"

namespace stageline::python {

// stageline._engine.Run, open(), analyze() and diff(). False with an exception set.
bool make_run_type(PyObject* module);

// From now on runs are not freed: the process ends, and the system takes its memory faster than destructors give it
// back.
void leave_runs_to_the_system();

}  // namespace stageline::python
