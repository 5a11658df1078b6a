/* stageline_record._record: the recorder's calls for Python. C and not ctypes, because a range must cost nothing: two ctypes
 * calls take 800 ns, these 60. The stable ABI of Python 3.9: one build for all later ones.
 *
 *   job("F", 3, 0) ──▶ Job ──__enter__──▶ slr_begin          one object, no dict, no tuple
 *   push("name")   ──▶ names: str → slr_str ──▶ slr_push     interned once
 *
 * Argument errors raise, as in any Python function; nothing else does. */
#include "record_module.h"

static PyObject* names;         /* str → slr_str as int; no more than the recorder has */
static PyObject* kinds;         /* str → enum slr_kind as int */
static PyObject* lane_of;       /* callable: a stream object → lane; set by stageline_record */
static PyTypeObject* job_type;
enum { kMaxNames = 65534 };

static PyObject* none(void) {
  Py_INCREF(Py_None);
  return Py_None;
}

/* −1 with an exception when `value` is neither. */
static int64_t whole_number(PyObject* value, const char* what) {
  if (value == Py_None) return -1;
  if (!PyLong_Check(value)) { /* numpy's and torch's integers */
    PyObject* index = PyNumber_Index(value);
    if (!index) {
      PyErr_Format(PyExc_TypeError, "%s is a whole number or None, not %R", what, value);
      return -1;
    }
    const int64_t n = PyLong_AsLongLong(index);
    Py_DECREF(index);
    return n;
  }
  return PyLong_AsLongLong(value);
}

/* A name, or the number that intern() gave. 0 with an exception for anything else. */
static slr_str name_of(PyObject* text) {
  PyObject* known = PyDict_GetItemWithError(names, text);
  if (known) return (slr_str)PyLong_AsUnsignedLong(known);
  if (PyErr_Occurred()) return 0;
  if (PyLong_Check(text)) return (slr_str)PyLong_AsUnsignedLong(text);
  if (!PyUnicode_Check(text)) {
    PyErr_Format(PyExc_TypeError, "a name is a str, not %R", text);
    return 0;
  }
  PyObject* bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
  if (!bytes) return 0;
  char* data;
  Py_ssize_t size;
  slr_str id = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) == 0) id = library.intern_(data, (size_t)size);
  Py_DECREF(bytes);
  if (id != 0 && PyDict_Size(names) < kMaxNames) { /* 0: no library yet, or its table is full */
    PyObject* number = PyLong_FromUnsignedLong(id);
    if (!number || PyDict_SetItem(names, text, number) < 0) id = 0;
    Py_XDECREF(number);
  }
  return id;
}

static int lane_from(PyObject* value, slr_lane* out) {
  if (value == Py_None) {
    *out = 0;
    return 0;
  }
  if (PyLong_Check(value)) {
    *out = (slr_lane)PyLong_AsUnsignedLong(value);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (!lane_of || lane_of == Py_None) {
    PyErr_Format(PyExc_TypeError, "a lane is the number that lane() gave, not %R", value);
    return -1;
  }
  PyObject* lane = PyObject_CallFunctionObjArgs(lane_of, value, NULL);
  if (!lane) return -1;
  *out = (slr_lane)PyLong_AsUnsignedLong(lane);
  Py_DECREF(lane);
  return PyErr_Occurred() ? -1 : 0;
}

static int too_many(const char* function, Py_ssize_t most) {
  PyErr_Format(PyExc_TypeError, "%s takes at most %zd positional arguments", function, most);
  return -1;
}

/* ---- jobs ---- */

static const char* const kFieldNames[] = {"kind", "micro_batch", "chunk", "lane", "name", "stage", "peer", "bytes", "sequence"};
static PyObject* field_names[kFields]; /* interned */
static PyObject* short_micro_batch;    /* "mb" */
static PyObject* stream_word;          /* "stream": the same as lane */

typedef struct Job {
  PyObject_HEAD
  slr_job job;
  slr_lane lane;
  slr_range open;       /* 0: not entered, or nothing is recorded */
  slr_range* outer;     /* entered again while open: those before */
  Py_ssize_t outer_count, outer_room;
} Job;

static int field_of(PyObject* keyword) {
  for (int f = 0; f < kFields; ++f)
    if (keyword == field_names[f]) return f;
  if (keyword == short_micro_batch) return kMicroBatch;
  if (keyword == stream_word) return kLane;
  for (int f = 0; f < kFields; ++f) /* made at run time: not the interned object */
    if (PyUnicode_Compare(keyword, field_names[f]) == 0) return f;
  if (PyUnicode_Compare(keyword, short_micro_batch) == 0) return kMicroBatch;
  if (PyUnicode_Compare(keyword, stream_word) == 0) return kLane;
  return -1;
}

int set_job_field(int field, PyObject* value, slr_job* job, slr_lane* lane) {
  switch (field) {
    case kKind: {
      PyObject* kind = PyDict_GetItemWithError(kinds, value);
      if (!kind) {
        if (!PyErr_Occurred())
          PyErr_Format(PyExc_ValueError, "no kind of job %R; kinds: F, B, I, W, F&B, SF, RF, SB, RB, C, O, L; another range: range(name)",
                       value);
        return -1;
      }
      job->kind = (uint32_t)PyLong_AsUnsignedLong(kind);
      return 0;
    }
    case kLane: return lane_from(value, lane);
    case kName:
      if (value == Py_None) return 0;
      job->name = name_of(value);
      return PyErr_Occurred() ? -1 : 0;
    default: break;
  }
  const int64_t n = whole_number(value, kFieldNames[field]);
  if (n == -1 && PyErr_Occurred()) return -1;
  const int32_t small = n < 0 || n > INT32_MAX ? -1 : (int32_t)n;
  switch (field) {
    case kMicroBatch: job->micro_batch = small; break;
    case kChunk: job->chunk = small; break;
    case kStage: job->stage = small; break;
    case kPeer: job->peer = small; break;
    case kBytes: job->bytes = n < 0 ? -1 : n; break;
    default: job->sequence = n < 0 ? -1 : n; break;
  }
  return 0;
}

/* kind, micro_batch, chunk, lane; the others by their names. */
static int read_job(PyObject* const* args, Py_ssize_t count, PyObject* keywords, slr_job* job, slr_lane* lane) {
  const slr_job empty = SLR_JOB(SLR_USER, -1, -1);
  *job = empty;
  if (count > kName) return too_many("job()", kName);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (set_job_field((int)i, args[i], job, lane) < 0) return -1;
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* keyword = PyTuple_GetItem(keywords, i);
    const int field = field_of(keyword);
    if (field < 0) {
      PyErr_Format(PyExc_TypeError, "job() has no argument %R", keyword);
      return -1;
    }
    if (set_job_field(field, args[count + i], job, lane) < 0) return -1;
  }
  return 0;
}

static Job* new_job(void) {
  Job* self = PyObject_New(Job, job_type);
  if (!self) return NULL;
  self->lane = 0;
  self->open = 0;
  self->outer = NULL;
  self->outer_count = self->outer_room = 0;
  return self;
}

static PyObject* make_job(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  (void)module;
  Job* self = new_job();
  if (!self) return NULL;
  if (count == 0 && !keywords) {
    PyErr_SetString(PyExc_TypeError, "job() needs a kind, such as \"F\"");
    Py_DECREF(self);
    return NULL;
  }
  if (read_job(args, count, keywords, &self->job, &self->lane) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static PyObject* make_range(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count < 1 || count > 2) {
    PyErr_SetString(PyExc_TypeError, "range(name, lane=None) takes one or two arguments");
    return NULL;
  }
  Job* self = new_job();
  if (!self) return NULL;
  const slr_job empty = SLR_JOB(SLR_USER, -1, -1);
  self->job = empty;
  self->job.name = name_of(args[0]);
  if (PyErr_Occurred() || (count > 1 && lane_from(args[1], &self->lane) < 0)) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static int job_begin(Job* self) {
  const slr_range range = library.begin_(self->lane, &self->job);
  if (self->open != 0) {
    if (self->outer_count == self->outer_room) {
      const Py_ssize_t room = self->outer_room ? 2 * self->outer_room : 4;
      slr_range* more = PyMem_Realloc(self->outer, (size_t)room * sizeof *more);
      if (!more) {
        library.end_(range);
        PyErr_NoMemory();
        return -1;
      }
      self->outer = more;
      self->outer_room = room;
    }
    self->outer[self->outer_count++] = self->open;
  }
  self->open = range;
  return 0;
}

static void job_end(Job* self) {
  library.end_(self->open);
  self->open = self->outer_count > 0 ? self->outer[--self->outer_count] : 0;
}

static PyObject* job_enter(PyObject* self, PyObject* unused) {
  (void)unused;
  if (job_begin((Job*)self) < 0) return NULL;
  Py_INCREF(self);
  return self;
}

static PyObject* job_exit(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)args;
  (void)count;
  job_end((Job*)self);
  Py_INCREF(Py_False); /* the exception goes on */
  return Py_False;
}

static PyObject* job_end_method(PyObject* self, PyObject* unused) {
  (void)unused;
  job_end((Job*)self);
  return none();
}

static PyObject* job_switch(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  Job* self = (Job*)object;
  slr_job next;
  slr_lane lane = self->lane;
  if (read_job(args, count, keywords, &next, &lane) < 0) return NULL;
  self->job = next;
  self->lane = lane;
  self->open = library.switch_(lane, self->open, &self->job);
  Py_INCREF(object);
  return object;
}

/* A range that nobody ended stays open: it is drawn as unfinished, which it is. */
static void job_dealloc(PyObject* self) {
  PyMem_Free(((Job*)self)->outer);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyMethodDef job_methods[] = {
    {"__enter__", job_enter, METH_NOARGS, "Begins the range."},
    {"__exit__", FAST(job_exit), METH_FASTCALL, "Ends it; exceptions go on."},
    {"begin", job_enter, METH_NOARGS, "Begins the range; end() ends it, from any thread."},
    {"end", job_end_method, METH_NOARGS, "Ends the range."},
    {"switch", FAST_KEYWORDS(job_switch), METH_FASTCALL | METH_KEYWORDS,
     "switch(kind, micro_batch=None, chunk=None, lane=None, …)\n\nEnds this job and begins the next: one event of the device for both."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot job_slots[] = {{Py_tp_methods, job_methods},
                                  {Py_tp_dealloc, (void*)job_dealloc},
                                  {Py_tp_doc, (void*)"A range: a context manager. Made by job() and range()."},
                                  {0, NULL}};
static PyType_Spec job_spec = {"stageline_record._record.Job", sizeof(Job), 0, Py_TPFLAGS_DEFAULT, job_slots};

/* ---- calls ---- */

/* name and lane of push, mark; lane of pop */
static PyObject* push(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  slr_lane lane = 0;
  if (count < 1 || count > 2) return too_many("push()", 2), NULL;
  const slr_str name = name_of(args[0]);
  if ((name == 0 && PyErr_Occurred()) || (count > 1 && lane_from(args[1], &lane) < 0)) return NULL;
  library.push_(lane, name);
  return none();
}

static PyObject* pop(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  slr_lane lane = 0;
  if (count > 1) return too_many("pop()", 1), NULL;
  if (count > 0 && lane_from(args[0], &lane) < 0) return NULL;
  library.pop_(lane);
  return none();
}

static PyObject* mark(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  slr_lane lane = 0;
  if (count < 1 || count > 2) return too_many("mark()", 2), NULL;
  const slr_str name = name_of(args[0]);
  if ((name == 0 && PyErr_Occurred()) || (count > 1 && lane_from(args[1], &lane) < 0)) return NULL;
  library.mark_(lane, name);
  return none();
}

static PyObject* counter(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "counter(name, value) takes two arguments");
    return NULL;
  }
  const slr_str name = name_of(args[0]);
  if (name == 0 && PyErr_Occurred()) return NULL;
  const double value = PyFloat_AsDouble(args[1]);
  if (value == -1.0 && PyErr_Occurred()) return NULL;
  library.counter_(name, value);
  return none();
}

static int program_counts; /* step() was called by the program itself */
static PyObject* step(PyObject* module, PyObject* number) {
  (void)module;
  const int64_t n = whole_number(number, "step");
  if (n == -1 && PyErr_Occurred()) return NULL;
  program_counts = 1;
  library.step_(n);
  return none();
}

/* What hooks count. The program's own step() is better, and from its first call on the only one. */
static PyObject* count_step(PyObject* module, PyObject* number) {
  if (program_counts) return none();
  PyObject* result = step(module, number);
  program_counts = 0;
  return result;
}

static PyObject* window(PyObject* module, PyObject* args) {
  (void)module;
  long long first, stop;
  if (!PyArg_ParseTuple(args, "LL:window", &first, &stop)) return NULL;
  library.window_(first, stop);
  return none();
}

static PyObject* intern(PyObject* module, PyObject* text) {
  (void)module;
  const slr_str id = name_of(text);
  return id == 0 && PyErr_Occurred() ? NULL : PyLong_FromUnsignedLong(id);
}

static PyObject* lane_stream(PyObject* module, PyObject* args) {
  (void)module;
  int device;
  unsigned long long handle;
  const char* name;
  if (!PyArg_ParseTuple(args, "iKz:lane_stream", &device, &handle, &name)) return NULL;
  return PyLong_FromUnsignedLong(library.lane_stream_(device, (void*)(uintptr_t)handle, name));
}

static PyObject* lane_host(PyObject* module, PyObject* args) {
  (void)module;
  const char* name;
  if (!PyArg_ParseTuple(args, "z:lane_host", &name)) return NULL;
  return PyLong_FromUnsignedLong(library.lane_host_(name));
}

static PyObject* lane_close(PyObject* module, PyObject* args) {
  (void)module;
  unsigned int lane;
  if (!PyArg_ParseTuple(args, "I:lane_close", &lane)) return NULL;
  library.lane_close_(lane);
  return none();
}

static PyObject* name_thread(PyObject* module, PyObject* args) {
  (void)module;
  const char* name;
  if (!PyArg_ParseTuple(args, "s:name_thread", &name)) return NULL;
  library.name_thread_(name);
  return none();
}

/* past(began_ns_ago, ended_ns_ago, kind, micro_batch=None, chunk=None, lane=None, name=None, …); kind None: a range by its name */
static PyObject* past(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  slr_job job = SLR_JOB(SLR_USER, -1, -1);
  slr_lane lane = 0;
  if (count < 3 || count > 2 + kFields) return too_many("past()", 2 + kFields), NULL;
  const int64_t began = whole_number(args[0], "began_ns_ago"), ended = whole_number(args[1], "ended_ns_ago");
  if (PyErr_Occurred()) return NULL;
  for (Py_ssize_t i = 2; i < count; ++i)
    if (args[i] != Py_None && set_job_field((int)i - 2, args[i], &job, &lane) < 0) return NULL;
  library.past_(lane, &job, began < 0 ? 0 : (uint64_t)began, ended < 0 ? 0 : (uint64_t)ended);
  return none();
}

/* ---- the recording ---- */

static PyObject* load(PyObject* module, PyObject* args) {
  (void)module;
  const char* path;
  if (!PyArg_ParseTuple(args, "z:load", &path)) return NULL;
  const char* why = load_library(path);
  return why ? PyUnicode_DecodeLocale(why, "surrogateescape") : none();
}

static PyObject* init(PyObject* module, PyObject* args) {
  (void)module;
  slr_config config = SLR_CONFIG_INIT;
  if (!PyArg_ParseTuple(args, "zziiiiiiiid:init", &config.dir, &config.job, &config.rank, &config.world, &config.stage,
                        &config.dp_rank, &config.pp, &config.tp, &config.dp, &config.vp, &config.max_overhead))
    return NULL;
  int result;
  Py_BEGIN_ALLOW_THREADS
  result = library.init_(&config);
  Py_END_ALLOW_THREADS
  return PyLong_FromLong(result);
}

static PyObject* shut_down(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  Py_BEGIN_ALLOW_THREADS
  library.shutdown_();
  Py_END_ALLOW_THREADS
  return none();
}

static PyObject* flush(PyObject* module, PyObject* args) {
  (void)module;
  int timeout_ms, result;
  if (!PyArg_ParseTuple(args, "i:flush", &timeout_ms)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  result = library.flush_(timeout_ms);
  Py_END_ALLOW_THREADS
  return PyLong_FromLong(result);
}

static PyObject* stats(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  slr_statistics s = {0};
  s.size = (uint32_t)sizeof s;
  library.stats_(&s);
  unsigned long long drops = 0;
  for (int i = 0; i < 16; ++i) drops += s.drops[i];
  return Py_BuildValue("{s:O,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d}", "recording", s.recording ? Py_True : Py_False, "records",
                       (unsigned long long)s.records, "written_records", (unsigned long long)s.written_records, "written_bytes",
                       (unsigned long long)s.written_bytes, "drops", drops, "write_errors", (unsigned long long)s.write_errors,
                       "device_ranges", (unsigned long long)s.device_ranges, "events", (unsigned long long)s.events, "overhead",
                       s.overhead);
}

static PyObject* path(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyUnicode_DecodeFSDefault(library.path_());
}

static PyObject* set_lane_of(PyObject* module, PyObject* callable) {
  (void)module;
  Py_INCREF(callable);
  Py_XDECREF(lane_of);
  lane_of = callable;
  return none();
}

static PyMethodDef methods[] = {
    {"job", FAST_KEYWORDS(make_job), METH_FASTCALL | METH_KEYWORDS,
     "job(kind, micro_batch=None, chunk=None, lane=None, *, name=None, stage=None, peer=None, bytes=None, sequence=None)\n\n"
     "A job of the pipeline's schedule: F, B, I, W, F&B, SF, RF, SB, RB, C, O, L. A context manager."},
    {"range", FAST(make_range), METH_FASTCALL, "range(name, lane=None)\n\nA range of your own: a context manager."},
    {"push", FAST(push), METH_FASTCALL, "push(name, lane=None)\n\nBegins a range that the thread's next pop() of that lane ends."},
    {"pop", FAST(pop), METH_FASTCALL, "pop(lane=None)\n\nEnds the thread's last push() of that lane."},
    {"mark", FAST(mark), METH_FASTCALL, "mark(name, lane=None)\n\nAn instant."},
    {"counter", FAST(counter), METH_FASTCALL, "counter(name, value)\n\nA value that changes over time."},
    {"step", step, METH_O, "step(number)\n\nA training step begins."},
    {"count_step", count_step, METH_O, NULL},
    {"past", FAST(past), METH_FASTCALL, NULL},
    {"window", window, METH_VARARGS, "window(first, stop)\n\nOnly steps first … stop − 1 are recorded; first < 0: all again."},
    {"intern", intern, METH_O, "intern(name)\n\nThe number of a name, for push() and mark()."},
    {"lane_stream", lane_stream, METH_VARARGS, NULL},
    {"lane_host", lane_host, METH_VARARGS, NULL},
    {"lane_close", lane_close, METH_VARARGS, NULL},
    {"name_thread", name_thread, METH_VARARGS, "name_thread(name)\n\nHow the calling thread's lane is called."},
    {"load", load, METH_VARARGS, NULL},
    {"init", init, METH_VARARGS, NULL},
    {"shutdown", shut_down, METH_NOARGS, "Writes what is there and closes the file; at exit by itself."},
    {"flush", flush, METH_VARARGS, NULL},
    {"stats", stats, METH_NOARGS, "Counts of the recording so far."},
    {"path", path, METH_NOARGS, "The file being written; \"\" when there is none."},
    {"set_lane_of", set_lane_of, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "stageline_record._record", NULL, -1, methods, NULL, NULL, NULL, NULL};

static int make_tables(void) {
  static const struct {
    const char* name;
    int kind;
  } kKinds[] = {{"F", SLR_FORWARD}, {"B", SLR_BACKWARD}, {"I", SLR_INPUT_GRAD}, {"W", SLR_WEIGHT_GRAD},
                {"F&B", SLR_FORWARD_BACKWARD}, {"FB", SLR_FORWARD_BACKWARD}, {"SF", SLR_SEND_FORWARD}, {"RF", SLR_RECV_FORWARD},
                {"SB", SLR_SEND_BACKWARD}, {"RB", SLR_RECV_BACKWARD}, {"C", SLR_COLLECTIVE}, {"O", SLR_OPTIMIZER}, {"L", SLR_LOAD}};
  names = PyDict_New();
  kinds = PyDict_New();
  if (!names || !kinds) return -1;
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    PyObject* number = PyLong_FromLong(kKinds[i].kind);
    if (!number || PyDict_SetItemString(kinds, kKinds[i].name, number) < 0) return -1;
    Py_DECREF(number);
  }
  for (int f = 0; f < kFields; ++f)
    if (!(field_names[f] = PyUnicode_InternFromString(kFieldNames[f]))) return -1;
  short_micro_batch = PyUnicode_InternFromString("mb");
  stream_word = PyUnicode_InternFromString("stream");
  job_type = (PyTypeObject*)PyType_FromSpec(&job_spec);
  return short_micro_batch && stream_word && job_type ? 0 : -1;
}

PyMODINIT_FUNC PyInit__record(void) {
  if (!names && make_tables() < 0) return NULL;
  PyObject* module = PyModule_Create(&definition);
  if (!module) return NULL;
  Py_INCREF(job_type);
  if (PyModule_AddObject(module, "Job", (PyObject*)job_type) < 0 || add_hooks(module) < 0) {
    Py_DECREF(job_type);
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
