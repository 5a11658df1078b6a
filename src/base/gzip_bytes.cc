#include "base/gzip_bytes.h"

#include <zlib.h>

#include <algorithm>
#include <cassert>

namespace stageline {

std::string gzip_bytes(std::string_view bytes) {
  z_stream stream{};
  // 15 + 16: the largest window, in a gzip wrapper. The header carries no time, so equal input
  // gives equal bytes.
  [[maybe_unused]] int code = deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  assert(code == Z_OK);
  std::string out;
  std::string chunk(size_t{1} << 18, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  size_t left = bytes.size();
  do {
    const size_t take = std::min(left, size_t{1} << 30);  // avail_in is 32 bits wide
    left -= take;
    stream.avail_in = static_cast<uInt>(take);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream.avail_out = static_cast<uInt>(chunk.size());
      code = deflate(&stream, left > 0 ? Z_NO_FLUSH : Z_FINISH);
      out.append(chunk, 0, chunk.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (left > 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace stageline
