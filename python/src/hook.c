/* Calls of a framework's functions as ranges. Everything that does not change from call to call is worked out once:
 *
 *   Hook(function, of, picks, after, failed, when, level)      by run.py, when a function is wrapped
 *   hook.call(args, kwargs)                                     by the function that stands in its place, at each call
 *
 *   picks   ((position, name, default), …): the arguments that `of` wants, wherever the call has them
 *   of      is given them, and says what the call is: None for nothing, or as many as needed of
 *           (kind, micro_batch, chunk, lane, name, stage, peer, bytes, sequence); kind None: a range of its own, by its name
 *   after   None, or is given the result and the same arguments when the call is done
 *   failed  is given the exception of `of` or `after`; the framework's function runs as it is
 *   when    which of allow()'s switches must be on
 *   level   0, or a number: a call inside another one of this number is a part of it, and no range
 *
 * A lane that is not said is that of the current stream of the device that is in use, else the thread's. 0.3 µs a call more than the
 * function alone and `of`; with inspect.signature().bind() in Python it was 13 µs. Guarded by the GIL, as the module says. */
#include "record_module.h"

enum { kMaxPicks = 12, kMaxLevels = 16, kMaxSwitches = 4, kMaxDevices = 4 };

typedef struct Hook {
  PyObject_HEAD
  PyObject *function, *of, *after, *failed;
  int when, level;
  Py_ssize_t count;
  Py_ssize_t place[kMaxPicks];
  PyObject *name[kMaxPicks], *otherwise[kMaxPicks]; /* otherwise: NULL where the call must say it */
} Hook;

static PyTypeObject* hook_type;
static int allowed[kMaxSwitches];
static int depth[kMaxLevels];
static int32_t own_stage = -1;

/* A device's module has its `_initialized` in its dictionary: asked there, a program without a device pays one look-up for it. */
static struct Device {
  PyObject *module_names, *lane;
} devices[kMaxDevices];
static int device_count;
static PyObject* initialized_word;

static PyObject* none(void) {
  Py_INCREF(Py_None);
  return Py_None;
}

/* 0: the thread's. −1 with an exception. */
static int64_t current_lane(void) {
  for (int d = 0; d < device_count; ++d) {
    if (PyDict_GetItemWithError(devices[d].module_names, initialized_word) != Py_True) continue;
    PyObject* lane = PyObject_CallObject(devices[d].lane, NULL);
    if (!lane) return -1;
    const int64_t number = lane == Py_None ? 0 : PyLong_AsLongLong(lane);
    Py_DECREF(lane);
    return number;
  }
  return PyErr_Occurred() ? -1 : 0;
}

static void complain(const Hook* self) {
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  PyObject* said = PyObject_CallFunctionObjArgs(self->failed, error ? error : Py_None, NULL);
  if (!said) PyErr_Clear();
  Py_XDECREF(said);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
}

/* A new tuple of the arguments after `before` free places; NULL without an exception where the call lacks one: it fails in its own words. */
static PyObject* picked(const Hook* self, PyObject* args, PyObject* kwargs) {
  PyObject* values = PyTuple_New(self->count);
  if (!values) {
    PyErr_Clear();
    return NULL;
  }
  const Py_ssize_t given = PyTuple_Size(args);
  for (Py_ssize_t i = 0; i < self->count; ++i) {
    PyObject* value = self->place[i] >= 0 && self->place[i] < given ? PyTuple_GetItem(args, self->place[i])
                      : kwargs                                     ? PyDict_GetItemWithError(kwargs, self->name[i])
                                                                   : NULL;
    if (!value) value = self->otherwise[i];
    if (!value) {
      PyErr_Clear();
      Py_DECREF(values);
      return NULL;
    }
    Py_INCREF(value);
    PyTuple_SetItem(values, i, value);
  }
  return values;
}

/* 1: the call is a range; 0: it is not; −1 with an exception. */
static int describe(const Hook* self, PyObject* values, slr_job* job, slr_lane* lane) {
  const slr_job empty = SLR_JOB(SLR_USER, -1, -1);
  *job = empty;
  job->stage = own_stage;
  *lane = 0;
  PyObject* said = PyObject_CallObject(self->of, values);
  if (!said) return -1;
  int result = said == Py_None ? 0 : 1;
  int says_lane = 0;
  if (result && !PyTuple_Check(said)) {
    PyErr_SetString(PyExc_TypeError, "a hook says a job as a tuple, or None");
    result = -1;
  }
  const Py_ssize_t size = result == 1 ? PyTuple_Size(said) : 0;
  for (Py_ssize_t i = 0; i < size && i < kFields && result == 1; ++i) {
    PyObject* value = PyTuple_GetItem(said, i);
    if (value == Py_None) continue;
    if (i == kLane) says_lane = 1;
    if (set_job_field((int)i, value, job, lane) < 0) result = -1;
  }
  Py_DECREF(said);
  if (result != 1 || says_lane) return result;
  const int64_t current = current_lane();
  if (current < 0) return -1;
  *lane = (slr_lane)current;
  return 1;
}

static PyObject* hook_call(PyObject* object, PyObject* const* arguments, Py_ssize_t count) {
  Hook* self = (Hook*)object;
  if (count != 2 || !PyTuple_Check(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "call(args, kwargs)");
    return NULL;
  }
  PyObject *args = arguments[0], *kwargs = arguments[1] == Py_None ? NULL : arguments[1];
  if (!allowed[self->when] || (self->level && depth[self->level])) return PyObject_Call(self->function, args, kwargs);
  PyObject* values = picked(self, args, kwargs);
  slr_job job;
  slr_lane lane;
  const int range_wanted = values ? describe(self, values, &job, &lane) : 0;
  if (range_wanted < 0) complain(self);
  if (range_wanted < 1) {
    Py_XDECREF(values);
    return PyObject_Call(self->function, args, kwargs);
  }
  const slr_range range = library.begin_(lane, &job);
  ++depth[self->level];
  PyObject* result = PyObject_Call(self->function, args, kwargs);
  --depth[self->level];
  library.end_(range);
  if (result && self->after != Py_None) {
    PyObject* all = PyTuple_New(self->count + 1);
    if (all) {
      Py_INCREF(result);
      PyTuple_SetItem(all, 0, result);
      for (Py_ssize_t i = 0; i < self->count; ++i) {
        PyObject* value = PyTuple_GetItem(values, i);
        Py_INCREF(value);
        PyTuple_SetItem(all, i + 1, value);
      }
    }
    PyObject* done = all ? PyObject_CallObject(self->after, all) : NULL;
    if (!done) complain(self);
    Py_XDECREF(done);
    Py_XDECREF(all);
  }
  Py_DECREF(values);
  return result;
}

static PyObject* make_hook(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *function, *of, *picks, *after, *failed;
  int when, level;
  if (!PyArg_ParseTuple(args, "OOO!OOii:Hook", &function, &of, &PyTuple_Type, &picks, &after, &failed, &when, &level)) return NULL;
  const Py_ssize_t count = PyTuple_Size(picks);
  if (count > kMaxPicks || when < 0 || when >= kMaxSwitches || level < 0 || level >= kMaxLevels) {
    PyErr_SetString(PyExc_ValueError, "too many arguments picked, or no such switch or level");
    return NULL;
  }
  Hook* self = PyObject_New(Hook, hook_type);
  if (!self) return NULL;
  self->when = when;
  self->level = level;
  self->count = 0;
  self->function = function, self->of = of, self->after = after, self->failed = failed;
  Py_INCREF(function), Py_INCREF(of), Py_INCREF(after), Py_INCREF(failed);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *name, *otherwise = NULL;
    if (!PyArg_ParseTuple(PyTuple_GetItem(picks, i), "nO|O", &self->place[i], &name, &otherwise)) {
      Py_DECREF(self);
      return NULL;
    }
    Py_INCREF(name);
    Py_XINCREF(otherwise);
    self->name[i] = name;
    self->otherwise[i] = otherwise;
    ++self->count;
  }
  return (PyObject*)self;
}

static void hook_dealloc(PyObject* object) {
  Hook* self = (Hook*)object;
  for (Py_ssize_t i = 0; i < self->count; ++i) {
    Py_DECREF(self->name[i]);
    Py_XDECREF(self->otherwise[i]);
  }
  Py_DECREF(self->function);
  Py_DECREF(self->of);
  Py_DECREF(self->after);
  Py_DECREF(self->failed);
  PyTypeObject* type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyMethodDef hook_object_methods[] = {{"call", FAST(hook_call), METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot hook_slots[] = {{Py_tp_methods, hook_object_methods}, {Py_tp_dealloc, (void*)hook_dealloc}, {0, NULL}};
static PyType_Spec hook_spec = {"stageline_record._record.Hook", sizeof(Hook), 0, Py_TPFLAGS_DEFAULT, hook_slots};

static PyObject* allow(PyObject* module, PyObject* args) {
  (void)module;
  int which, on;
  if (!PyArg_ParseTuple(args, "ip:allow", &which, &on)) return NULL;
  if (which >= 0 && which < kMaxSwitches) allowed[which] = on;
  return none();
}

static PyObject* set_stage(PyObject* module, PyObject* args) {
  (void)module;
  int stage;
  if (!PyArg_ParseTuple(args, "i:set_stage", &stage)) return NULL;
  own_stage = stage < 0 ? -1 : stage;
  return none();
}

/* [(dictionary of a device's module, callable that gives the lane of its current stream), …], the first initialized one is in use */
static PyObject* set_devices(PyObject* module, PyObject* list) {
  (void)module;
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "set_devices() takes a list");
    return NULL;
  }
  while (device_count > 0) {
    --device_count;
    Py_DECREF(devices[device_count].module_names);
    Py_DECREF(devices[device_count].lane);
  }
  for (Py_ssize_t i = 0; i < PyList_Size(list) && device_count < kMaxDevices; ++i) {
    PyObject *names, *lane;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "O!O", &PyDict_Type, &names, &lane)) return NULL;
    Py_INCREF(names), Py_INCREF(lane);
    devices[device_count].module_names = names;
    devices[device_count++].lane = lane;
  }
  return none();
}

static PyObject* current_lane_of_python(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  const int64_t lane = current_lane();
  return lane < 0 ? NULL : PyLong_FromLongLong(lane);
}

PyMethodDef hook_methods[] = {{"hook", make_hook, METH_VARARGS, NULL},
                              {"allow", allow, METH_VARARGS, NULL},
                              {"set_stage", set_stage, METH_VARARGS, NULL},
                              {"set_devices", set_devices, METH_O, NULL},
                              {"current_lane", current_lane_of_python, METH_NOARGS, NULL},
                              {NULL, NULL, 0, NULL}};

int add_hooks(PyObject* module) {
  if (!hook_type) {
    initialized_word = PyUnicode_InternFromString("_initialized");
    hook_type = (PyTypeObject*)PyType_FromSpec(&hook_spec);
    if (!initialized_word || !hook_type) return -1;
  }
  return PyModule_AddFunctions(module, hook_methods);
}
