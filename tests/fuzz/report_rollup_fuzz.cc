#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "reports/crc32c.h"
#include "reports/rollup_cell.h"
#include "reports/rollup_reader.h"

namespace {

using namespace kvstore::reports;

/// Writes at `at` the right checksum of the bytes before it and of those from `at` + 4.
void Reseal(std::string& bytes, size_t at) {
  if (bytes.size() < at + 4) return;
  const std::string_view all = bytes;
  const uint32_t crc = Crc32c(all.substr(at + 4), Crc32c(all.substr(0, at)));
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(crc >> (24 - 8 * i));
}

/// Reads all series of these parts; what is given must be in order and within the limits.
void Read(const RollupReader::Parts& parts, MetricKind kind) {
  constexpr uint64_t kStepMs = 1'000;
  const auto reader = RollupReader::Make(parts, kind, kStepMs, kMaxSegmentKeys);
  if (!reader.ok()) return;
  SeriesSummary series;
  for (size_t i = 0;; ++i) {
    const auto more = (*reader)->Next();
    if (!more.ok() || !*more) return;
    if (i % 3 == 2) continue;
    if (!(*reader)->Read(series).ok()) return;
    const size_t steps = kind == MetricKind::kValue ? series.values.size() : series.sketches.size();
    if (steps != series.times.size()) std::abort();
    for (size_t step = 0; step < steps; ++step) {
      if (step > 0 && series.times[step - 1] >= series.times[step]) std::abort();
      if (kind != MetricKind::kValue) continue;
      if (series.values[step].count == 0) std::abort();
      Aggregate aggregate;
      aggregate.Add(series.values[step]);
      if (!aggregate.Result({.kind = Function::Kind::kCount}).ok()) std::abort();
    }
  }
}

}  // namespace

/// Any bytes as cells of a roll-up whose checksums are right: refused, or what they decode to encodes to them
/// again. Then their chunks as parts of one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Reseal(bytes, 1);
  if (const auto made = DecodeMade(bytes); made.ok() && EncodeMade(*made) != bytes) std::abort();
  const auto cell = DecodeRollupCell(bytes);
  if (!cell.ok()) return 0;
  std::vector<std::string> chunks(cell->chunks.begin(), cell->chunks.end());
  if (EncodeRollupCell(cell->made_of, chunks) != bytes) std::abort();
  for (std::string& chunk : chunks) Reseal(chunk, 2);
  const auto part = [&](size_t begin, size_t end) {
    RollupCell some{.made_of = cell->made_of};
    for (size_t i = begin; i < end && i < chunks.size(); ++i) some.chunks.push_back(chunks[i]);
    return some;
  };
  Read({{RollupPart::kSketch, part(0, 1)}}, MetricKind::kDistinct);
  Read({{RollupPart::kCount, part(0, 1)}, {RollupPart::kMin, part(1, 2)}, {RollupPart::kLast, part(1, 3)}},
       MetricKind::kValue);
  Read({{RollupPart::kCount, part(0, 1)}, {RollupPart::kSum, part(1, chunks.size())}}, MetricKind::kValue);
  return 0;
}
