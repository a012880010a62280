#include "reports/chunk.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/big_endian.h"
#include "reports/bits.h"
#include "reports/byte_reader.h"
#include "reports/chunk_directory.h"
#include "reports/columns.h"
#include "reports/crc32c.h"

namespace kvstore::reports {
namespace {

constexpr uint8_t kChunkVersion = 1;
constexpr uint8_t kZstd = 1;
constexpr size_t kChunkHeaderBytes = 6;
/// Bodies below this do not become smaller by what a frame costs.
constexpr size_t kMinCompressedBytes = 64;
constexpr int kZstdLevel = 3;

void PackSegments(BitWriter& out, const ChunkDirectory& directory, std::span<const uint32_t> segments) {
  for (size_t key = 0; key < segments.size(); ++key) {
    const auto& values = directory.segment_values[key];
    const auto at = std::lower_bound(values.begin(), values.end(), segments[key]);
    out.Write(static_cast<uint64_t>(at - values.begin()), BitWidth(values.size() - 1));
  }
}

std::string EncodeBody(const PointBlock& points, const ChunkDirectory& directory) {
  BitWriter bits;
  const SeriesPoints& all = points.all();
  std::vector<uint64_t> units;
  for (size_t i = 0; i < points.series(); ++i) {
    const size_t begin = points.begin(i);
    const auto times = points.times(i);
    PackSegments(bits, directory, points.segments(i));
    const bool same = i > 0 && std::ranges::equal(times, points.times(i - 1));
    bits.Write(same ? 1 : 0, 1);
    if (!same) {
      units.clear();
      for (const int64_t time : times) {
        units.push_back(static_cast<uint64_t>(time - directory.min_time) / directory.time_unit);
      }
      bits.WriteSized(times.size());
      PackTimes(bits, units);
    }
    if (directory.writes == ChunkDirectory::Writes::kBoth) {
      for (size_t p = begin; p < begin + times.size(); ++p) bits.Write(all.adds[p], 1);
    }
    if (directory.kind == MetricKind::kValue) {
      PackNumbers(bits, std::span(all.numbers).subspan(begin, times.size()));
    }
  }
  const std::string packed = std::move(bits).Finish();
  std::string body;
  AppendVarint(body, packed.size());
  body += packed;
  for (const std::string& sketch : all.sketches) {
    AppendVarint(body, sketch.size());
    body += sketch;
  }
  return body;
}

/// The frame of the body, or nothing where that saves less than a sixteenth.
std::string Compressed(const std::string& body) {
  if (body.size() < kMinCompressedBytes) return {};
  std::string frame(ZSTD_compressBound(body.size()), '\0');
  // A context is large, so that each thread keeps one.
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                                  &ZSTD_freeCCtx);
  const size_t size =
      ZSTD_compressCCtx(context.get(), frame.data(), frame.size(), body.data(), body.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0 || size > body.size() - body.size() / 16) return {};
  frame.resize(size);
  return frame;
}

}  // namespace

absl::StatusOr<std::string> EncodeChunk(const PointBlock& points, const ChunkNotes& notes) {
  if (points.points() > kMaxChunkPoints) {
    return absl::InvalidArgumentError(
        fmt::format("a chunk of {} points, the limit is {}", points.points(), kMaxChunkPoints));
  }
  ChunkDirectory directory = Survey(points);
  directory.notes = notes;
  std::string body;
  if (points.points() > 0) body = EncodeBody(points, directory);
  if (body.size() > kMaxChunkBodyBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a chunk of {} bytes, the limit is {}", body.size(), kMaxChunkBodyBytes));
  }
  directory.body_bytes = body.size();
  const std::string frame = Compressed(body);
  const std::string packed_directory = EncodeDirectory(directory);
  std::string rest;
  AppendVarint(rest, packed_directory.size());
  rest += packed_directory;
  rest += frame.empty() ? body : frame;
  std::string bytes;
  bytes.push_back(static_cast<char>(kChunkVersion));
  bytes.push_back(static_cast<char>(frame.empty() ? 0 : kZstd));
  // The form takes part in the checksum, so that no bit of a chunk can change unnoticed.
  AppendBigEndian(bytes, Crc32c(rest, Crc32c(bytes)));
  return bytes + rest;
}

absl::StatusOr<Chunk> Chunk::Open(std::string_view bytes) {
  if (bytes.size() < kChunkHeaderBytes) {
    return absl::DataLossError(fmt::format("a chunk of {} bytes; the shortest has more", bytes.size()));
  }
  const auto version = static_cast<uint8_t>(bytes[0]);
  const auto form = static_cast<uint8_t>(bytes[1]);
  if (version != kChunkVersion) {
    return absl::DataLossError(
        fmt::format("a chunk of version {}; this program reads version {}", version, kChunkVersion));
  }
  if (form > kZstd || ReadBigEndian<uint32_t>(bytes.substr(2)) !=
                          Crc32c(bytes.substr(kChunkHeaderBytes), Crc32c(bytes.substr(0, 2)))) {
    return absl::DataLossError("a chunk's checksum is wrong");
  }
  ByteReader in(bytes.substr(kChunkHeaderBytes));
  const std::string_view packed_directory = in.Bytes(in.Varint());
  if (in.failed()) return absl::DataLossError("a chunk ends inside its directory");
  auto directory = DecodeDirectory(packed_directory);
  if (!directory.ok()) return directory.status();
  Chunk chunk;
  chunk.directory_ = *std::move(directory);
  chunk.body_ = in.rest();
  chunk.compressed_ = form == kZstd;
  chunk.stored_bytes_ = bytes.size();
  if (!chunk.compressed_ && chunk.body_.size() != chunk.directory_.body_bytes) {
    return absl::DataLossError("a chunk's body has not the size that its directory says");
  }
  return chunk;
}

absl::StatusOr<std::string_view> Chunk::Body(std::string& room) const {
  if (!compressed_) return body_;
  room.resize(directory_.body_bytes);
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                                  &ZSTD_freeDCtx);
  const size_t size =
      ZSTD_decompressDCtx(context.get(), room.data(), room.size(), body_.data(), body_.size());
  if (ZSTD_isError(size) != 0 || size != room.size()) {
    return absl::DataLossError("a chunk's body does not decompress");
  }
  return room;
}

}  // namespace kvstore::reports
