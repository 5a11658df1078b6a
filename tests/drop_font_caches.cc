// Linked into programs under AddressSanitizer: fontconfig finds its caches again through offsets, which
// LeakSanitizer cannot follow and takes for leaks at exit. Dropping them leaves nothing to suppress.
#include <cairo.h>
#include <dlfcn.h>

namespace {

struct DropFontCaches {
  ~DropFontCaches() {
    cairo_debug_reset_static_data();
    if (void* const finish = dlsym(RTLD_DEFAULT, "FcFini")) reinterpret_cast<void (*)()>(finish)();
  }
} drop_font_caches;

}  // namespace
