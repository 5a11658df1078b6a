#include "frame_type.h"

#include <new>

#include "arrow.h"
#include "exporters/table_text.h"
#include "exporters/table_words.h"
#include "long_call.h"

namespace stageline::python {
namespace {

PyObject* g_frame_type = nullptr;
PyObject* g_buffer_type = nullptr;

// ---- Buffer: one column of one batch, for numpy's __array_interface__ -----------------------------------------------

struct BufferObject {
  PyObject_HEAD std::shared_ptr<const void>* owner;
  const void* values;
  Py_ssize_t count;
  char kind;  // numpy's: 'i', 'u', 'f'
  char size;
};

void free_object(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  auto* const release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

void buffer_dealloc(PyObject* self) {
  delete reinterpret_cast<BufferObject*>(self)->owner;
  free_object(self);
}

PyObject* new_object(PyObject* type) {
  auto* const allocate =
      reinterpret_cast<allocfunc>(PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type), Py_tp_alloc));
  return allocate(reinterpret_cast<PyTypeObject*>(type), 0);
}

PyObject* buffer(const void* values, size_t count, char kind, char size, std::shared_ptr<const void> owner) {
  PyObject* const self = new_object(g_buffer_type);
  if (!self) return nullptr;
  auto* b = reinterpret_cast<BufferObject*>(self);
  b->owner = new std::shared_ptr<const void>(std::move(owner));
  b->values = values;
  b->count = static_cast<Py_ssize_t>(count);
  b->kind = kind;
  b->size = size;
  return self;
}

PyObject* array_interface(PyObject* self, void*) {
  const auto* b = reinterpret_cast<const BufferObject*>(self);
  char type[8];
  snprintf(type, sizeof type, "%c%c%d", b->size == 1 ? '|' : '<', b->kind, b->size);
  // numpy asks for an address even of nothing.
  static const int64_t nothing = 0;
  const void* const at = b->count == 0 ? &nothing : b->values;
  return Py_BuildValue("{s:i,s:s,s:(n),s:(KO)}", "version", 3, "typestr", type, "shape", b->count, "data",
                       static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(at)), Py_True);
}

PyObject* buffer_address(PyObject* self, void*) {
  return PyLong_FromVoidPtr(const_cast<void*>(reinterpret_cast<BufferObject*>(self)->values));
}

Py_ssize_t buffer_length(PyObject* self) { return reinterpret_cast<BufferObject*>(self)->count; }

PyObject* buffer_item(PyObject* self, Py_ssize_t i) {
  const auto* b = reinterpret_cast<const BufferObject*>(self);
  if (i < 0 || i >= b->count) {
    PyErr_SetString(PyExc_IndexError, "there is no such row");
    return nullptr;
  }
  if (b->kind == 'f') return PyFloat_FromDouble(static_cast<const double*>(b->values)[i]);
  if (b->size == 8) return PyLong_FromLongLong(static_cast<const int64_t*>(b->values)[i]);
  if (b->size == 1) return PyLong_FromLong(static_cast<const uint8_t*>(b->values)[i]);
  if (b->kind == 'u') return PyLong_FromUnsignedLong(static_cast<const uint32_t*>(b->values)[i]);
  return PyLong_FromLong(static_cast<const int32_t*>(b->values)[i]);
}

// ---- Frame ----------------------------------------------------------------------------------------------------------

struct FrameObject {
  PyObject_HEAD std::shared_ptr<const Frame>* frame;
};

const Frame& frame_of(PyObject* self) { return **reinterpret_cast<FrameObject*>(self)->frame; }

void frame_dealloc(PyObject* self) {
  delete reinterpret_cast<FrameObject*>(self)->frame;
  free_object(self);
}

// Capsules that were not taken release their content.
template <class T> void drop_capsule(PyObject* capsule, const char* name) {
  auto* held = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  if (!held) return PyErr_Clear();
  if (held->release) held->release(held);
  delete held;
}

PyObject* arrow_schema(PyObject* self, PyObject*) {
  auto* schema = new ArrowSchema{};
  fill_schema(frame_of(self), schema);
  return PyCapsule_New(schema, "arrow_schema", [](PyObject* c) { drop_capsule<ArrowSchema>(c, "arrow_schema"); });
}

// A schema that is asked for is a wish by the interface's own words; the frame's own is what comes.
PyObject* arrow_stream(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"requested_schema", nullptr};
  PyObject* requested = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O", const_cast<char**>(names), &requested)) return nullptr;
  auto* stream = new ArrowArrayStream{};
  fill_stream(*reinterpret_cast<FrameObject*>(self)->frame, stream);
  return PyCapsule_New(stream, "arrow_array_stream",
                       [](PyObject* c) { drop_capsule<ArrowArrayStream>(c, "arrow_array_stream"); });
}

PyObject* frame_columns(PyObject* self, void*) {
  Ref list(PyList_New(0));
  for (const FrameColumn& c : frame_of(self).columns()) {
    const Ref item(
        list ? Py_BuildValue("(sssss)", c.name.c_str(), c.title.c_str(), c.type.c_str(), c.unit.c_str(), c.help.c_str())
             : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* texts_list(const Texts& texts, const FrameData* data, int64_t rows) {
  Ref list(PyList_New(rows));
  for (int64_t i = 0; list && i < rows; ++i) {
    const bool known = !data || !data->valid || ((*data->valid)[static_cast<size_t>(i) / 8] >> (i % 8) & 1);
    const auto at = static_cast<size_t>(i);
    Ref item = known ? Ref(text(std::string_view(texts.bytes)
                                    .substr(static_cast<size_t>(texts.offsets[at]),
                                            static_cast<size_t>(texts.offsets[at + 1] - texts.offsets[at]))))
                     : Ref::borrowed(Py_None);
    if (!item || PyList_SetItem(list.get(), i, item.release()) != 0) return nullptr;
  }
  return list.release();
}

// (values, valid): values a Buffer, or a list of str; valid a Buffer of bits or None.
PyObject* frame_data(PyObject* self, PyObject* arguments) {
  Py_ssize_t batch = 0, column = 0;
  if (!PyArg_ParseTuple(arguments, "nn", &batch, &column)) return nullptr;
  const Frame& frame = frame_of(self);
  if (batch < 0 || static_cast<size_t>(batch) >= frame.batch_count() || column < 0 ||
      static_cast<size_t>(column) >= frame.columns().size()) {
    PyErr_SetString(PyExc_IndexError, "there is no such batch or column");
    return nullptr;
  }
  const auto share = *reinterpret_cast<FrameObject*>(self)->frame;
  const auto b = static_cast<size_t>(batch), c = static_cast<size_t>(column);
  PyThreadState* const state = PyEval_SaveThread();
  const FrameData data = frame.data(b, c);
  PyEval_RestoreThread(state);
  const auto rows = frame.batch_rows(b);
  Ref values;
  const auto as = [&](char kind, char size) {
    return Ref(buffer(data.values, static_cast<size_t>(rows), kind, size, data.owner));
  };
  switch (frame.columns()[c].form) {
    case Form::kInt64: values = as('i', 8); break;
    case Form::kFloat64: values = as('f', 8); break;
    case Form::kInt32: values = as('i', 4); break;
    case Form::kUint32:
    case Form::kCode32: values = as('u', 4); break;
    case Form::kCode8: values = as('u', 1); break;
    case Form::kUtf8: values = Ref(texts_list(*static_cast<const Texts*>(data.owner.get()), &data, rows)); break;
  }
  if (!values) return nullptr;
  const Ref valid =
      data.valid ? Ref(buffer(data.valid->data(), data.valid->size(), 'u', 1, data.valid)) : Ref::borrowed(Py_None);
  return valid ? PyTuple_Pack(2, values.get(), valid.get()) : nullptr;
}

// The texts that the codes of a column stand for; None for columns of values.
PyObject* frame_dictionary(PyObject* self, PyObject* arguments) {
  Py_ssize_t column = 0;
  if (!PyArg_ParseTuple(arguments, "n", &column)) return nullptr;
  const Frame& frame = frame_of(self);
  if (column < 0 || static_cast<size_t>(column) >= frame.columns().size()) {
    PyErr_SetString(PyExc_IndexError, "there is no such column");
    return nullptr;
  }
  const auto texts = frame.dictionary(static_cast<size_t>(column));
  if (!texts) return Ref::borrowed(Py_None).release();
  return texts_list(*texts, nullptr, static_cast<int64_t>(texts->size()));
}

Py_ssize_t frame_length(PyObject* self) { return static_cast<Py_ssize_t>(frame_of(self).row_count()); }

PyObject* batch_rows(PyObject* self, PyObject*) {
  Ref list(PyList_New(0));
  for (size_t b = 0; b < frame_of(self).batch_count(); ++b) {
    const Ref item(list ? PyLong_FromLongLong(frame_of(self).batch_rows(b)) : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

// "csv", "json" or "text" of a frame that is a table of the program; None of others.
PyObject* frame_form(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"form", "rows", "wide", "width", "chinese", nullptr};
  const char* form = nullptr;
  long long rows = 0;
  int wide = 0, width = 0, chinese = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|Lpip", const_cast<char**>(names), &form, &rows, &wide,
                                   &width, &chinese))
    return nullptr;
  const Table* const table = frame_of(self).table();
  if (!table) return Ref::borrowed(Py_None).release();
  const std::string kind = form;
  if (kind == "csv") return text(format_table_csv(*table));
  if (kind == "json") {
    JsonWriter json;
    append_table_json(json, *table);
    return text(json.take());
  }
  if (kind == "title") return text(table_title(*table, chinese != 0));
  return text(format_table_text(*table, width, false, rows <= 0 ? SIZE_MAX : static_cast<size_t>(rows), wide != 0, 0,
                                chinese != 0));
}

// Returns the text of one value for people, "1.500", "36.4", "–", and the unit of the column.
PyObject* frame_shown(PyObject* self, PyObject* arguments) {
  Py_ssize_t row = 0, column = 0;
  if (!PyArg_ParseTuple(arguments, "nn", &row, &column)) return nullptr;
  const Table* const table = frame_of(self).table();
  if (!table || row < 0 || static_cast<size_t>(row) >= table->row_count() || column < 0 ||
      static_cast<size_t>(column) >= table->columns().size())
    return Ref::borrowed(Py_None).release();
  return text(table->shown_text(static_cast<size_t>(row), static_cast<size_t>(column)));
}

PyObject* frame_shown_units(PyObject* self, void*) {
  std::vector<std::string> units;
  if (const Table* table = frame_of(self).table())
    for (const ColumnSpec& spec : table->columns()) units.emplace_back(shown_unit(spec.type));
  return text_list(units);
}

PyObject* frame_name(PyObject* self, void*) { return text(frame_of(self).name()); }
PyObject* frame_title(PyObject* self, void*) { return text(frame_of(self).title()); }

PyMethodDef frame_methods[] = {
    {"__arrow_c_schema__", arrow_schema, METH_NOARGS, "The columns as an Arrow schema capsule."},
    {"__arrow_c_stream__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(arrow_stream)),
     METH_VARARGS | METH_KEYWORDS, "The rows as an Arrow stream capsule."},
    {"data", frame_data, METH_VARARGS, "data(batch, column): values and the bits of those that are known."},
    {"dictionary", frame_dictionary, METH_VARARGS, "dictionary(column): the texts that codes stand for, or None."},
    {"batch_rows", batch_rows, METH_NOARGS, "Rows of each batch."},
    {"form", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(frame_form)), METH_VARARGS | METH_KEYWORDS,
     "form(kind, rows=0, wide=False, width=0, chinese=False): csv, json, text or title; None of what is no answer."},
    {"shown", frame_shown, METH_VARARGS, "shown(row, column): as people read it."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef frame_attributes[] = {{"name", frame_name, nullptr, nullptr, nullptr},
                                  {"title", frame_title, nullptr, nullptr, nullptr},
                                  {"columns", frame_columns, nullptr, nullptr, nullptr},
                                  {"shown_units", frame_shown_units, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot frame_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(frame_dealloc)},
                             {Py_tp_methods, frame_methods},
                             {Py_tp_getset, frame_attributes},
                             {Py_sq_length, reinterpret_cast<void*>(frame_length)},
                             {0, nullptr}};
PyType_Spec frame_spec = {"stageline._engine.Frame", sizeof(FrameObject), 0, Py_TPFLAGS_DEFAULT, frame_slots};

PyGetSetDef buffer_attributes[] = {{"__array_interface__", array_interface, nullptr, nullptr, nullptr},
                                   {"address", buffer_address, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot buffer_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)},
                              {Py_tp_getset, buffer_attributes},
                              {Py_sq_length, reinterpret_cast<void*>(buffer_length)},
                              {Py_sq_item, reinterpret_cast<void*>(buffer_item)},
                              {0, nullptr}};
PyType_Spec buffer_spec = {"stageline._engine.Buffer", sizeof(BufferObject), 0, Py_TPFLAGS_DEFAULT, buffer_slots};

bool add_type(PyObject* module, const char* name, PyType_Spec& spec, PyObject*& type) {
  type = PyType_FromSpec(&spec);
  return type && PyObject_SetAttrString(module, name, type) == 0;
}

}  // namespace

bool make_frame_types(PyObject* module) {
  return add_type(module, "Frame", frame_spec, g_frame_type) && add_type(module, "Buffer", buffer_spec, g_buffer_type);
}

PyObject* frame_object(std::shared_ptr<const Frame> frame) {
  PyObject* const self = new_object(g_frame_type);
  if (self) reinterpret_cast<FrameObject*>(self)->frame = new std::shared_ptr<const Frame>(std::move(frame));
  return self;
}

PyObject* frame_list(std::vector<Table> tables) {
  Ref list(PyList_New(0));
  for (Table& table : tables) {
    const Ref item(list ? frame_object(table_frame(std::make_shared<const Table>(std::move(table)))) : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

}  // namespace stageline::python
