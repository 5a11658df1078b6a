// stageline._engine is the program's engine for Python. It is C++ on the limited API of Python 3.9: one file for all
// later ones, with nothing needed at run time. It uses no binding library (docs/decisions/python-module.md).
// Convenience is written in Python.
#include "analyses/analysis.h"
#include "base/output_file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/flags.h"
#include "exporters/exporter.h"
#include "frame_type.h"
#include "long_call.h"
#include "readers/reader.h"
#include "run_type.h"

namespace stageline::python {
namespace {

bool append(const Ref& list, PyObject* item) {
  const Ref owned(item);
  return owned && PyList_Append(list.get(), owned.get()) == 0;
}

PyObject* option_list(const std::vector<AnalysisOption>& options) {
  Ref list(PyList_New(0));
  for (const AnalysisOption& o : options)
    if (!list ||
        !append(list, Py_BuildValue("(ssNs)", o.name.c_str(), o.value.c_str(), in_python(o.help), o.choices.c_str())))
      return nullptr;
  return list.release();
}

// Columns as Table.columns has them, of every table.
PyObject* column_lists(const std::vector<const TableSpec*>& tables) {
  Ref lists(PyList_New(0));
  for (const TableSpec* table : tables) {
    Ref list(PyList_New(0));
    for (const ColumnSpec& c : table->columns)
      if (!list || !append(list, Py_BuildValue("(sssss)", c.name.c_str(), c.title.c_str(),
                                               std::string(column_type_name(c.type)).c_str(),
                                               std::string(raw_unit(c.type)).c_str(), c.help.c_str())))
        return nullptr;
    if (!lists || !append(lists, list.release())) return nullptr;
  }
  return lists.release();
}

// Returns [(name, summary, needs, compat, format, makes_overlay, [(table, summary)], [(option, value, help, choices)],
// [[column]] by table)].
PyObject* analysis_list(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (const Analysis* a : analyses()) {
    const Ref tables(PyList_New(0));
    for (const TableSpec* table : a->tables())
      if (!tables || !append(tables, Py_BuildValue("(ss)", table->name.c_str(), table->summary.c_str())))
        return nullptr;
    const Ref options(option_list(a->options()));
    const Ref columns(column_lists(a->tables()));
    if (!list || !tables || !options || !columns ||
        !append(list, Py_BuildValue("(sssssOOOO)", a->name.c_str(), a->summary.c_str(), needs_name(a->needs), a->compat,
                                    a->format, a->makes_overlay ? Py_True : Py_False, tables.get(), options.get(),
                                    columns.get())))
      return nullptr;
  }
  return list.release();
}

// [(name, value, help, choices)] of a command, in the order of its help.
PyObject* flag_list(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return nullptr;
  const Command* const command = find_command(name);
  if (!command) return raise({ErrorCode::kUsage, std::string("no command \"") + name + "\"", {}, ""});
  Ref list(PyList_New(0));
  for (const std::string_view flag : command->flags) {
    const Flag& known = flag_of(*command, flag);
    if (!list || !append(list, Py_BuildValue("(ssss)", known.name.c_str(), known.value.c_str(), known.help.c_str(),
                                             known.choices.c_str())))
      return nullptr;
  }
  return list.release();
}

// Writes a whole file, by the gate that keeps inputs and files of others from being replaced.
PyObject* write_whole(PyObject*, PyObject* arguments) {
  PyObject* path = nullptr;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(arguments, "O&y#", PyUnicode_FSConverter, &path, &bytes, &size)) return nullptr;
  const Ref owner(path);
  char* name = nullptr;
  Py_ssize_t length = 0;
  if (PyBytes_AsStringAndSize(path, &name, &length) != 0) return nullptr;
  protect_measurements(&measurement_kind);
  if (Status s = write_file({name, static_cast<size_t>(length)}, {bytes, static_cast<size_t>(size)}); !s)
    return raise(s.error());
  Py_RETURN_NONE;
}

PyObject* exporter_list(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (const Exporter* e : exporters())
    if (!list || !append(list, Py_BuildValue("(ss)", e->name, e->summary))) return nullptr;
  return list.release();
}

PyObject* finish(PyObject*, PyObject*) {
  wait_for_leftovers();
  leave_runs_to_the_system();
  return Ref::borrowed(Py_None).release();
}

PyMethodDef functions[] = {
    {"analyses", analysis_list, METH_NOARGS, "What can be asked, with tables and options."},
    {"flags", flag_list, METH_VARARGS, "flags(command): what its keywords are made of."},
    {"write_file", write_whole, METH_VARARGS, "Writes a whole file that is no input."},
    {"exporters", exporter_list, METH_NOARGS, "Kinds of output."},
    {"finish", finish, METH_NOARGS, "For the end of the process: waits for what Ctrl-C left running."},
    {nullptr, nullptr, 0, nullptr}};

int fill(PyObject* module) {
  protect_measurements(&measurement_kind);
  return make_exceptions(module) && make_frame_types(module) && make_run_type(module) &&
                 PyModule_AddStringConstant(module, "version", STAGELINE_VERSION) == 0
             ? 0
             : -1;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "stageline._engine", "Stageline's engine.", 0, functions, slots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace stageline::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__engine() {
  return PyModuleDef_Init(&stageline::python::definition);
}
