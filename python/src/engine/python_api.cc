#include "python_api.h"

#include <algorithm>
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

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kInPython = {{
    {"stageline help analyses", "stageline.analyses()"},
    {"stageline analyze --help", "help(stageline.open)"},
    {"stageline what-if --help", "help(stageline.Trace.what_if)"},
    {"stageline analyze", "Trace.analyze"},
    {"stageline export", "Trace.export"},
    {"stageline report", "Trace.report"},
    {"stageline info", "Trace.info"},
    {"\"analyze\" has no flag", "there is no option"},
    {"has no flag", "has no option"},
}};
// Values that are words. Other words after a flag go on with the sentence.
constexpr std::array<std::string_view, 15> kValues = {"hta", "msprof", "torch", "rebuilt", "json",
                                                      "csv", "sqlite", "never", "always",  "auto",
                                                      "off", "html",   "true",  "false",   "paddle-v3"};

// Flags behind these, in the same line, are a command's to type.
constexpr std::array<std::string_view, 5> kCommands = {"nsys ", "rocprofv3 ", "msprof ", "torchrun ", "stageline "};

bool in_command(std::string_view before) {
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  return std::ranges::any_of(kCommands, [&](std::string_view c) { return line.find(c) != std::string_view::npos; });
}

bool of_name(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

// Returns the bytes of the value that `text` starts with, 0 when it starts with another word.
size_t value_size(std::string_view text) {
  size_t size = std::min(text.find_first_of(" \n);"), text.size());
  while (size > 0 && (text[size - 1] == ',' || text[size - 1] == '.' || text[size - 1] == ':')) --size;
  const std::string_view word = text.substr(0, size);
  const bool shown =
      !word.empty() && (word[0] == '"' || (word[0] >= '0' && word[0] <= '9') || (word[0] >= 'A' && word[0] <= 'Z'));
  return shown || std::ranges::find(kValues, word) != kValues.end() ? size : 0;
}

}  // namespace

std::string in_python(std::string_view words) {
  std::string said(words), out;
  for (const auto& [command, python] : kInPython)
    for (size_t at = said.find(command); at != std::string::npos; at = said.find(command, at + python.size()))
      said.replace(at, command.size(), python);
  const std::string_view text = said;
  for (size_t at = 0; at < text.size();) {
    const bool starts = at == 0 || std::string_view(" \n(\"").find(text[at - 1]) != std::string_view::npos;
    if (!starts || !text.substr(at).starts_with("--") || in_command(text.substr(0, at)) || at + 2 >= text.size() ||
        text[at + 2] < 'a' || text[at + 2] > 'z') {
      out += text[at++];
      continue;
    }
    for (at += 2; at < text.size() && of_name(text[at]); ++at) out += text[at] == '-' ? '_' : text[at];
    if (at >= text.size() || (text[at] != ' ' && text[at] != '=')) continue;
    const size_t size = value_size(text.substr(at + 1));
    if (size == 0) continue;
    const std::string_view value = text.substr(at + 1, size);
    const bool bare = value[0] == '"' || value.find_first_not_of("0123456789.") == std::string_view::npos ||
                      value.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
    ((out += '=') += bare ? "" : "'") += value;
    if (!bare) out += '\'';
    at += 1 + size;
  }
  return out;
}

PyObject* text(std::string_view utf8) {
  return PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogateescape");
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
  const Ref words(text(in_python(error.text())));
  const Ref instance(words ? PyObject_CallFunctionObjArgs(kind.type, words.get(), nullptr) : nullptr);
  if (instance && set(instance.get(), "what", text(in_python(error.what))) &&
      set(instance.get(), "where", text(error.where.text())) &&
      set(instance.get(), "hint", text(in_python(error.hint))) && set(instance.get(), "code", text(kind.id)))
    PyErr_SetObject(kind.type, instance.get());
  return nullptr;
}

PyObject* raise_internal(const std::string& what) {
  PyErr_SetString(g_internal, ("a fault of stageline " STAGELINE_VERSION ": " + what).c_str());
  return nullptr;
}

}  // namespace stageline::python
