// Frames as Python sees them.
#pragma once

#include <memory>

#include "frame.h"
#include "python_api.h"

namespace stageline::python {

// stageline._engine.Frame and .Buffer. False with an exception set.
bool make_frame_types(PyObject* module);
// New references, or null with an exception set.
PyObject* frame_object(std::shared_ptr<const Frame> frame);
PyObject* frame_list(std::vector<Table> tables);

}  // namespace stageline::python
