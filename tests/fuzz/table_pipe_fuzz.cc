#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "export/pipe/table.h"

using namespace kvstore;

namespace {

/// Bytes at an address that is a multiple of 8, with nothing after them that could be read unnoticed.
class Aligned {
 public:
  explicit Aligned(std::string_view bytes) : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(words_.data(), bytes.data(), bytes.size());
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(words_.data()), size_}; }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

/// Reads all that a batch says is there.
void ReadAll(const pipe::Schema& schema, const pipe::BatchView& batch) {
  uint64_t sum = 0;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const pipe::ColumnView& column = batch.columns[i];
    if ((column.validity != nullptr) != schema.columns[i].nullable) std::abort();
    for (uint32_t row = 0; row < batch.rows; ++row) {
      if (column.validity != nullptr) sum += column.validity[row / 8];
      if (column.numbers != nullptr) {
        sum += static_cast<uint64_t>(column.numbers[row]);
        continue;
      }
      if (column.offsets[row] < 0 || column.offsets[row] > column.offsets[row + 1]) std::abort();
      const auto end = static_cast<size_t>(column.offsets[row + 1]);
      if (end > column.bytes.size()) std::abort();
      for (size_t at = static_cast<size_t>(column.offsets[row]); at < end; ++at) {
        sum += static_cast<unsigned char>(column.bytes[at]);
      }
    }
  }
  // The reads must not be optimised away.
  static volatile uint64_t all = 0;
  all = all + sum;
}

}  // namespace

/// The input is the size of a schema's frame in two bytes, the frame without its header, and a batch's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) return 0;
  const size_t schema_size = static_cast<size_t>(data[0]) | static_cast<size_t>(data[1]) << 8;
  bytes.remove_prefix(2);
  const std::string_view schema_bytes = bytes.substr(0, schema_size);
  bytes.remove_prefix(schema_bytes.size());
  std::string problem;
  const auto schema = pipe::ReadSchema(schema_bytes, problem);
  if (!schema) return problem.empty() ? (std::abort(), 0) : 0;
  const std::string frame = pipe::BeginFrame(*schema);
  if (frame.substr(pipe::kMagic.size() + pipe::kFrameHeaderBytes) != schema_bytes) std::abort();
  const Aligned aligned(bytes);
  if (const auto batch = pipe::ReadBatch(*schema, aligned.view(), problem)) ReadAll(*schema, *batch);
  return 0;
}
