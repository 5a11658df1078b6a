#include "arrow.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace stageline::python {
namespace {

const char* format_of(Form form) {
  switch (form) {
    case Form::kInt64: return "l";
    case Form::kFloat64: return "g";
    case Form::kUint32:
    case Form::kCode32: return "I";
    case Form::kInt32: return "i";
    case Form::kUtf8: return "u";
    case Form::kCode8: return "C";
  }
  return "n";
}
bool has_dictionary(Form form) { return form == Form::kCode32 || form == Form::kCode8; }

// Key and value pairs as the interface wants them: native 32-bit lengths before each text.
std::string metadata_of(const FrameColumn& column) {
  const std::pair<const char*, const std::string*> pairs[] = {{"stageline.type", &column.type},
                                                              {"stageline.unit", &column.unit},
                                                              {"stageline.title", &column.title},
                                                              {"stageline.help", &column.help}};
  std::string out;
  const auto number = [&](size_t n) {
    const auto value = static_cast<int32_t>(n);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(std::size(pairs));
  for (const auto& [key, value] : pairs) {
    number(strlen(key));
    out += key;
    number(value->size());
    out += *value;
  }
  return out;
}

// A schema with all it points to. Children are part of it: consumers move or release them through their own release().
struct SchemaParts {
  std::string name, metadata;
  std::vector<ArrowSchema*> children;
};

void release_schema(ArrowSchema* schema) {
  auto* parts = static_cast<SchemaParts*>(schema->private_data);
  for (ArrowSchema* child : parts->children) {
    if (child->release) child->release(child);
    delete child;
  }
  if (schema->dictionary) {
    if (schema->dictionary->release) schema->dictionary->release(schema->dictionary);
    delete schema->dictionary;
  }
  delete parts;
  schema->release = nullptr;
}

void make_schema(ArrowSchema* out, const char* format, std::string name, std::string metadata, bool nullable) {
  auto* parts = new SchemaParts{std::move(name), std::move(metadata), {}};
  *out = {};
  out->format = format;
  out->name = parts->name.c_str();
  out->metadata = parts->metadata.empty() ? nullptr : parts->metadata.data();
  out->flags = nullable ? ARROW_FLAG_NULLABLE : 0;
  out->release = release_schema;
  out->private_data = parts;
}

struct ArrayParts {
  std::vector<const void*> buffers;
  std::vector<ArrowArray*> children;
  std::vector<std::shared_ptr<const void>> owners;
};

void release_array(ArrowArray* array) {
  auto* parts = static_cast<ArrayParts*>(array->private_data);
  for (ArrowArray* child : parts->children) {
    if (child->release) child->release(child);
    delete child;
  }
  if (array->dictionary) {
    if (array->dictionary->release) array->dictionary->release(array->dictionary);
    delete array->dictionary;
  }
  delete parts;
  array->release = nullptr;
}

ArrayParts* make_array(ArrowArray* out, int64_t length, std::vector<const void*> buffers) {
  auto* parts = new ArrayParts{std::move(buffers), {}, {}};
  *out = {};
  out->length = length;
  out->n_buffers = static_cast<int64_t>(parts->buffers.size());
  out->buffers = parts->buffers.data();
  out->release = release_array;
  out->private_data = parts;
  return parts;
}

void make_column(ArrowArray* out, const Frame& frame, size_t batch, size_t column) {
  FrameData data = frame.data(batch, column);
  const Form form = frame.columns()[column].form;
  std::vector<const void*> buffers = {data.valid ? data.valid->data() : nullptr, data.values};
  if (form == Form::kUtf8) buffers.push_back(data.bytes);
  ArrayParts* const parts = make_array(out, frame.batch_rows(batch), std::move(buffers));
  out->null_count = data.nulls;
  parts->owners.push_back(std::move(data.owner));
  if (data.valid) parts->owners.push_back(std::move(data.valid));
  if (!has_dictionary(form)) return;
  const std::shared_ptr<const Texts> texts = frame.dictionary(column);
  out->dictionary = new ArrowArray;
  make_array(out->dictionary, static_cast<int64_t>(texts->size()),
             {nullptr, texts->offsets.data(), texts->bytes.data()})
      ->owners.push_back(texts);
}

struct StreamParts {
  std::shared_ptr<const Frame> frame;
  size_t next = 0;
  std::string error;
};

// Every entry of the interface is C: an exception becomes a number and a text.
template <class Work> int guarded(ArrowArrayStream* stream, const Work& work) {
  auto* parts = static_cast<StreamParts*>(stream->private_data);
  try {
    work(*parts);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& e) {
    parts->error = e.what();
    return EIO;
  }
}

}  // namespace

void fill_schema(const Frame& frame, ArrowSchema* out) {
  make_schema(out, "+s", "", "", false);
  auto* parts = static_cast<SchemaParts*>(out->private_data);
  for (const FrameColumn& column : frame.columns()) {
    auto* child = new ArrowSchema;
    make_schema(child, format_of(column.form), column.name, metadata_of(column), true);
    parts->children.push_back(child);
    if (!has_dictionary(column.form)) continue;
    child->dictionary = new ArrowSchema;
    make_schema(child->dictionary, "u", "", "", true);
  }
  out->n_children = static_cast<int64_t>(parts->children.size());
  out->children = parts->children.data();
}

void fill_stream(std::shared_ptr<const Frame> frame, ArrowArrayStream* out) {
  *out = {};
  out->private_data = new StreamParts{std::move(frame), 0, {}};
  out->get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
    return guarded(stream, [&](const StreamParts& parts) { fill_schema(*parts.frame, schema); });
  };
  out->get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    return guarded(stream, [&](StreamParts& parts) {
      const Frame& rows = *parts.frame;
      if (parts.next >= rows.batch_count()) {
        array->release = nullptr;  // the end
        return;
      }
      const size_t batch = parts.next++;
      ArrayParts* const made = make_array(array, rows.batch_rows(batch), {nullptr});
      for (size_t c = 0; c < rows.columns().size(); ++c) {
        made->children.push_back(new ArrowArray{});
        make_column(made->children.back(), rows, batch, c);
      }
      array->n_children = static_cast<int64_t>(made->children.size());
      array->children = made->children.data();
    });
  };
  out->get_last_error = [](ArrowArrayStream* stream) -> const char* {
    const auto* parts = static_cast<const StreamParts*>(stream->private_data);
    return parts->error.empty() ? nullptr : parts->error.c_str();
  };
  out->release = [](ArrowArrayStream* stream) {
    delete static_cast<StreamParts*>(stream->private_data);
    stream->release = nullptr;
  };
}

}  // namespace stageline::python
