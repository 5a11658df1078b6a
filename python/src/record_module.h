/* The shared declarations of the files of stageline_record._record. */
#ifndef STAGELINE_PYTHON_RECORD_MODULE_H
#define STAGELINE_PYTHON_RECORD_MODULE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include "library.h"

/* The stable ABI has METH_FASTCALL since 3.10; flag and signature are those of 3.7 and later. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
typedef PyObject* (*FastFunction)(PyObject*, PyObject* const*, Py_ssize_t);
typedef PyObject* (*FastKeywordFunction)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
#define FAST(function) ((PyCFunction)(void (*)(void))(FastFunction)(function))
#define FAST_KEYWORDS(function) ((PyCFunction)(void (*)(void))(FastKeywordFunction)(function))

/* The fields of a job in the order in which job() takes them. */
enum Field { kKind, kMicroBatch, kChunk, kLane, kName, kStage, kPeer, kBytes, kSequence, kFields };

/* Sets one field; −1 with an exception for what it cannot be. */
int set_job_field(int field, PyObject* value, slr_job* job, slr_lane* lane);

/* Adds the functions of hook.c to the module; −1 with an exception. */
int add_hooks(PyObject* module);
extern PyMethodDef hook_methods[];

#endif
