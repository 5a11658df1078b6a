// Measures the minimum cost of reading a Kineto trace on this machine: it inflates the file and walks every field of
// every event with simdjson, keeping nothing.
//   stageline_kineto_floor FILE…   prints one line of JSON a file: bytes, events, fields and CPU seconds
#include <simdjson.h>
#include <time.h>
#include <zlib.h>

#include <cstdio>
#include <string>
#include <vector>

#ifdef STAGELINE_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

namespace {

namespace od = simdjson::ondemand;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Counts {
  size_t events = 0, fields = 0, sum = 0;
};

// Touches every scalar: numbers are parsed, strings are found (not copied).
bool walk(od::value value, Counts& counts) {
  od::json_type type{};
  if (value.type().get(type)) return false;
  switch (type) {
    case od::json_type::object: {
      od::object object;
      if (value.get_object().get(object)) return false;
      for (auto field : object) {
        od::raw_json_string key;
        od::value inner;
        if (field.key().get(key) || field.value().get(inner) || !walk(inner, counts)) return false;
        ++counts.fields;
      }
      return true;
    }
    case od::json_type::array: {
      od::array array;
      if (value.get_array().get(array)) return false;
      for (auto item : array) {
        od::value inner;
        if (item.get(inner) || !walk(inner, counts)) return false;
      }
      return true;
    }
    case od::json_type::string: {
      od::raw_json_string text;
      if (value.get_raw_json_string().get(text)) return false;
      counts.sum += static_cast<size_t>(text.raw()[0]);
      return true;
    }
    case od::json_type::number: {
      double number = 0;
      if (value.get_double().get(number)) return false;
      counts.sum += number > 0;
      return true;
    }
    default: counts.sum += value.raw_json_token().size(); return true;
  }
}

bool read_file(const char* path, std::string& out) {
  FILE* file = std::fopen(path, "rb");
  if (!file) return false;
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::rewind(file);
  out.resize(static_cast<size_t>(size));
  const bool read = std::fread(out.data(), 1, out.size(), file) == out.size();
  std::fclose(file);
  return read;
}

// All members of a gzip file; `out` keeps its capacity, so a second call pays for no fresh pages.
bool inflate_zlib(const std::string& packed, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  size_t have = 0;
  for (;;) {
    if (out.size() - have < (size_t{1} << 20)) out.resize(out.size() + out.size() / 2 + (size_t{1} << 24));
    const size_t room = out.size() - have;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    stream.avail_out = static_cast<uInt>(std::min(room, size_t{1} << 30));
    const uInt before = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    have += before - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      inflateReset(&stream);
    } else if (status != Z_OK) {
      return false;
    }
  }
  inflateEnd(&stream);
  out.resize(have);
  return true;
}

#ifdef STAGELINE_HAVE_ISAL
bool inflate_isal(const std::string& packed, std::string& out) {
  static inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(packed.data()));
  state.avail_in = static_cast<uint32_t>(packed.size());
  size_t have = 0;
  for (;;) {
    if (out.size() - have < (size_t{1} << 20)) out.resize(out.size() + out.size() / 2 + (size_t{1} << 24));
    state.next_out = reinterpret_cast<uint8_t*>(out.data() + have);
    state.avail_out = static_cast<uint32_t>(std::min(out.size() - have, size_t{1} << 30));
    const uint32_t before = state.avail_out;
    if (isal_inflate(&state) != ISAL_DECOMP_OK) return false;
    have += before - state.avail_out;
    if (state.block_state != ISAL_BLOCK_FINISH) continue;
    if (state.avail_in == 0) break;
    uint8_t* next = state.next_in;
    const uint32_t left = state.avail_in;
    isal_inflate_reset(&state);
    state.crc_flag = ISAL_GZIP;
    state.next_in = next;
    state.avail_in = left;
  }
  out.resize(have);
  return true;
}
#endif

bool walk_trace(const std::string& json, Counts& counts) {
  od::parser parser;
  od::document document;
  od::object root;
  if (parser.iterate(json.data(), json.size(), json.capacity()).get(document) || document.get_object().get(root))
    return false;
  for (auto field : root) {
    od::raw_json_string key;
    od::value value;
    if (field.key().get(key) || field.value().get(value)) return false;
    if (!(key == "traceEvents")) {
      if (!walk(value, counts)) return false;
      continue;
    }
    od::array events;
    if (value.get_array().get(events)) return false;
    for (auto item : events) {
      od::value event;
      if (item.get(event) || !walk(event, counts)) return false;
      ++counts.events;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string packed;
    if (!read_file(argv[i], packed)) {
      std::fprintf(stderr, "stageline_kineto_floor: cannot read %s\n", argv[i]);
      return 2;
    }
    const bool gzip = packed.size() > 2 && packed[0] == '\x1f' && static_cast<unsigned char>(packed[1]) == 0x8b;
    double zlib_s = 0, isal_s = 0;
    std::string json;
    if (gzip) {
      for (int run = 0; run < 2; ++run) {  // the second run writes into pages that are there
        const double begin = cpu_seconds();
        if (!inflate_zlib(packed, json)) {
          std::fprintf(stderr, "stageline_kineto_floor: %s does not inflate\n", argv[i]);
          return 2;
        }
        zlib_s = cpu_seconds() - begin;
      }
#ifdef STAGELINE_HAVE_ISAL
      const double begin = cpu_seconds();
      if (!inflate_isal(packed, json)) return 2;
      isal_s = cpu_seconds() - begin;
#endif
    } else {
      json = std::move(packed);
    }
    json.reserve(json.size() + simdjson::SIMDJSON_PADDING);
    Counts counts;
    double walk_s = 0;
    for (int run = 0; run < 3; ++run) {
      counts = {};
      const double begin = cpu_seconds();
      if (!walk_trace(json, counts)) {
        std::fprintf(stderr, "stageline_kineto_floor: %s is not JSON as simdjson reads it\n", argv[i]);
        return 2;
      }
      const double took = cpu_seconds() - begin;
      walk_s = run == 0 ? took : std::min(walk_s, took);
    }
    std::printf(
        "{\"json_bytes\": %zu, \"events\": %zu, \"fields\": %zu, \"walk_s\": %.6f, \"zlib_s\": %.6f, \"isal_s\": %.6f, "
        "\"kernel\": \"%s\", \"sum\": %zu}\n",
        json.size(), counts.events, counts.fields, walk_s, zlib_s, isal_s,
        simdjson::get_active_implementation()->name().c_str(), counts.sum);
  }
  return 0;
}
