#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SLR_NOTHING(result, name, parameters, otherwise) \
  static result no_##name parameters { otherwise; }
SLR_FUNCTIONS(SLR_NOTHING)
#undef SLR_NOTHING

#define SLR_NO(result, name, parameters, otherwise) no_##name,
Library library = {SLR_FUNCTIONS(SLR_NO)};
#undef SLR_NO

static int loaded = 0;
static char reason[1024];

int library_is_loaded(void) { return loaded; }

/* Takes all functions or none: an older library must not be half used. */
static const char* take_functions(void* handle) {
  Library found;
#define SLR_FIND(result, name, parameters, otherwise)                                           \
  {                                                                                             \
    void* const address = dlsym(handle, "slr_" #name);                                          \
    if (!address) {                                                                             \
      snprintf(reason, sizeof reason, "the recorder has no slr_%s: it is of another version", #name); \
      return reason;                                                                            \
    }                                                                                           \
    memcpy(&found.name##_, &address, sizeof address);                                           \
  }
  SLR_FUNCTIONS(SLR_FIND)
#undef SLR_FIND
  library = found;
  loaded = 1;
  return NULL;
}

const char* load_library(const char* path) {
  if (loaded) return NULL;
  /* The program itself may be linked with the recorder, statically too. */
  if (dlsym(RTLD_DEFAULT, "slr_begin")) return take_functions(RTLD_DEFAULT);
  void* handle = dlopen("libstageline_record.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!handle && path && *path) {
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      snprintf(reason, sizeof reason, "%s", why ? why : "cannot be loaded");
      return reason;
    }
  }
  if (!handle) return "no libstageline_record was found";
  return take_functions(handle);
}
