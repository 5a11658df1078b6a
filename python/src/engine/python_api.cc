#include "python_api.h"

#include <array>
#include <utility>

namespace stageline::python {
namespace {

struct Kind {
  ErrorCode code;
  const char* id;    // what .code says
  const char* name;  // stageline.NAME
  PyObject** also;   // a built-in exception that callers may catch instead
  PyObject* type;
};
// In the order of ErrorCode.
std::array<Kind, 8> g_kinds = {{{ErrorCode::kUsage, "usage", "UsageError", &PyExc_ValueError, nullptr},
                                {ErrorCode::kNotFound, "not_found", "NotFound", &PyExc_FileNotFoundError, nullptr},
                                {ErrorCode::kIo, "io", "IoError", &PyExc_OSError, nullptr},
                                {ErrorCode::kUnknownKind, "unknown_kind", "UnknownFormat", &PyExc_ValueError, nullptr},
                                {ErrorCode::kAmbiguous, "ambiguous", "AmbiguousFormat", &PyExc_ValueError, nullptr},
                                {ErrorCode::kBadInput, "bad_input", "BadInput", &PyExc_ValueError, nullptr},
                                {ErrorCode::kLimit, "limit", "LimitExceeded", &PyExc_RuntimeError, nullptr},
                                {ErrorCode::kUnavailable, "unavailable", "Unavailable", &PyExc_RuntimeError, nullptr}}};
PyObject* g_internal = nullptr;

bool set(PyObject* object, const char* name, PyObject* value) {
  const Ref owned(value);
  return owned && PyObject_SetAttrString(object, name, owned.get()) == 0;
}

}  // namespace

PyObject* text(std::string_view utf8) {
  return PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogateescape");
}

PyObject* in_python(std::string_view words) {
  const Ref said(text(words));
  const Ref module(said ? PyImport_ImportModule("stageline._words") : nullptr);
  return module ? PyObject_CallMethod(module.get(), "in_python", "O", said.get()) : nullptr;
}

bool take_text(PyObject* object, std::string& out) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(object, &bytes)) return false;  // str, bytes and os.PathLike
  const Ref owned(bytes);
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0) return false;
  out.assign(data, static_cast<size_t>(size));
  return true;
}

bool take_texts(PyObject* sequence, std::vector<std::string>& out) {
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item(PySequence_GetItem(sequence, i));
    if (!item || !take_text(item.get(), out.emplace_back())) return false;
  }
  return true;
}

PyObject* text_list(const std::vector<std::string>& texts) {
  Ref list(PyList_New(0));
  for (const std::string& one : texts) {
    const Ref item(list ? text(one) : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

bool make_exceptions(PyObject* module) {
  const Ref base(PyErr_NewExceptionWithDoc("stageline.Error",
                                           "What could not be done, with .what (one sentence), .where (file and place, "
                                           "or ''), .hint (what to do, or '') and "
                                           ".code.",
                                           nullptr, nullptr));
  if (!base || PyObject_SetAttrString(module, "Error", base.get()) != 0) return false;
  for (Kind& kind : g_kinds) {
    const Ref bases(PyTuple_Pack(2, base.get(), *kind.also));
    if (!bases) return false;
    kind.type = PyErr_NewException((std::string("stageline.") + kind.name).c_str(), bases.get(), nullptr);
    if (!kind.type || PyObject_SetAttrString(module, kind.name, kind.type) != 0) return false;
  }
  g_internal = PyErr_NewException("stageline.InternalError", base.get(), nullptr);
  return g_internal && PyObject_SetAttrString(module, "InternalError", g_internal) == 0;
}

PyObject* raise(const Error& error) {
  const Kind& kind = g_kinds[static_cast<size_t>(error.code)];
  const Ref words(in_python(error.text()));
  const Ref instance(words ? PyObject_CallFunctionObjArgs(kind.type, words.get(), nullptr) : nullptr);
  if (instance && set(instance.get(), "what", in_python(error.what)) &&
      set(instance.get(), "where", text(error.where.text())) && set(instance.get(), "hint", in_python(error.hint)) &&
      set(instance.get(), "code", text(kind.id)))
    PyErr_SetObject(kind.type, instance.get());
  return nullptr;
}

PyObject* raise_internal(const std::string& what) {
  PyErr_SetString(g_internal, ("a fault of stageline " STAGELINE_VERSION ": " + what).c_str());
  return nullptr;
}

}  // namespace stageline::python
