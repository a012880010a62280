#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "reports/chunk.h"
#include "reports/crc32c.h"
#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"
#include "reports/series_reader.h"

/// Any bytes as a chunk whose checksum is right, and as sketches: refused, or what they decode to is within
/// the limits and in order.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvstore::reports;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto sketch = HyperLogLog::Decode(bytes); sketch.ok() && sketch->Encode() != bytes) std::abort();
  if (const auto sketch = QuantileSketch::Decode(bytes); sketch.ok() && sketch->count() > 0) {
    const double middle = sketch->Quantile(0.5);
    if (middle < sketch->min() || middle > sketch->max()) std::abort();
  }
  if (size < 6) return 0;
  const uint32_t crc =
      Crc32c(std::string_view(bytes).substr(6), Crc32c(std::string_view(bytes).substr(0, 2)));
  for (size_t i = 0; i < 4; ++i) bytes[2 + i] = static_cast<char>(crc >> (24 - 8 * i));
  const auto chunk = Chunk::Open(bytes);
  if (!chunk.ok()) return 0;
  const auto reader = SeriesReader::Make(*chunk, kMaxSegmentKeys);
  if (!reader.ok()) return 0;
  SeriesPoints points;
  std::vector<int64_t> integers;
  uint64_t read = 0;
  while (true) {
    const auto more = (*reader)->Next();
    if (!more.ok() || !*more) break;
    if (read % 3 == 2) continue;
    if (read % 3 == 1) {
      const auto alone = (*reader)->ReadIntegers(integers);
      if (!alone.ok()) break;
      if (*alone && integers.size() != (*reader)->times().size()) std::abort();
      if (*alone) {
        read += integers.size();
        continue;
      }
    }
    if (!(*reader)->Read(points).ok()) break;
    read += points.size();
    for (size_t i = 1; i < points.size(); ++i) {
      if (points.times[i - 1] >= points.times[i]) std::abort();
    }
  }
  if (read > kMaxChunkPoints) std::abort();
  return 0;
}
