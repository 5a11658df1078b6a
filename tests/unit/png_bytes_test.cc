#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "exporters/chart/chart_file.h"

using namespace stageline;

namespace {

struct Bytes {
  std::string_view left;
};

cairo_status_t read_bytes(void* closure, unsigned char* data, unsigned int length) {
  auto& bytes = *static_cast<Bytes*>(closure);
  if (bytes.left.size() < length) return CAIRO_STATUS_READ_ERROR;
  std::memcpy(data, bytes.left.data(), length);
  bytes.left.remove_prefix(length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

TEST_CASE("a PNG has the pixels of its image") {
  std::mt19937 rng(3);
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 3}, {301, 40}}) {
    cairo_surface_t* image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    const int stride = cairo_image_surface_get_stride(image);
    for (int i = 0; i < stride * height; ++i) cairo_image_surface_get_data(image)[i] = static_cast<uint8_t>(rng());
    cairo_surface_mark_dirty(image);
    const std::string png = png_bytes(image);
    Bytes bytes{png};
    cairo_surface_t* read = cairo_image_surface_create_from_png_stream(read_bytes, &bytes);
    REQUIRE(cairo_surface_status(read) == CAIRO_STATUS_SUCCESS);
    CHECK(cairo_image_surface_get_width(read) == width);
    CHECK(cairo_image_surface_get_height(read) == height);
    int64_t different = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < 4 * width; ++x) {
        const int at = y * stride + x;
        if (x % 4 < 3 && cairo_image_surface_get_data(image)[at] != cairo_image_surface_get_data(read)[at]) ++different;
      }
    CHECK(different == 0);
    cairo_surface_destroy(read);
    cairo_surface_destroy(image);
  }
}
