#include "export/lane.h"

#include <fmt/format.h>

#include <utility>

#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::exports {
namespace {

/// A row group has so many bytes before they are encoded: memory for them is needed in both programs.
constexpr size_t kRowGroupBytes = size_t{8} << 20;
/// A file ends after the row group with which it has so many bytes. It is put in one piece, from memory.
constexpr size_t kFileBytes = size_t{32} << 20;

uint64_t BytesOfUnit(const Unit& unit) {
  uint64_t bytes = unit.key.size();
  for (const Cell& cell : unit.cells) bytes += cell.value.size();
  return bytes;
}

absl::StatusOr<BlobInfo> PutBlob(BlobStore& blobs, const std::string& name, const std::string& bytes) {
  if (bytes.size() <= kBlobPieceBytes) return blobs.Put(name, bytes, PutMode::kIfAbsent);
  size_t at = 0;
  const auto source = [&](std::span<char> buffer) -> absl::StatusOr<size_t> {
    const size_t count = bytes.copy(buffer.data(), buffer.size(), at);
    at += count;
    return count;
  };
  return blobs.PutStream(name, source, PutMode::kIfAbsent);
}

}  // namespace

absl::Status Lane::Write(UnitScan& scan) {
  bool begins = true;
  for (;;) {
    if (auto status = CheckCall(); !status.ok()) return status;
    auto units = scan.Next();
    if (!units.ok()) return units.status();
    if (units->empty()) break;
    // A row group is sorted. The part before may have been of another shard, whose keys are any.
    if (begins && units->front().key < last_key_) {
      if (auto status = EndRowGroup(); !status.ok()) return status;
    }
    begins = false;
    if (auto status = WriteUnits(*units); !status.ok()) return status;
  }
  return maker_->EndRange(*this);
}

absl::Status Lane::WriteUnits(std::vector<Unit>& units) {
  uint64_t bytes = 0;
  for (Unit& unit : units) {
    bytes += BytesOfUnit(unit);
    if (auto status = maker_->Add(unit, *this); !status.ok()) return status;
  }
  last_key_ = std::move(units.back().key);
  return common_.read(bytes);
}

absl::Status Lane::EndRow() {
  rows_.EndRow();
  if (rows_.bytes() - before_row_ > kMaxTableRowBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "a row has {} bytes with the columns that were asked for, and the limit is {}; name fewer columns",
        rows_.bytes() - before_row_, kMaxTableRowBytes));
  }
  before_row_ = rows_.bytes();
  if (rows_.bytes() < kRowGroupBytes && rows_.rows() < pipe::kMaxBatchRows) return absl::OkStatus();
  return EndRowGroup();
}

absl::Status Lane::EndRowGroup() {
  if (rows_.rows() == 0) return absl::OkStatus();
  if (auto status = StartFile(); !status.ok()) return status;
  if (auto status = writer_->Write(rows_); !status.ok()) return status;
  before_row_ = 0;
  return writer_->bytes() >= kFileBytes ? EndFile() : absl::OkStatus();
}

absl::Status Lane::PutEmpty() {
  if (auto status = StartFile(); !status.ok()) return status;
  return EndFile();
}

absl::Status Lane::StartFile() {
  if (writer_ != nullptr) return absl::OkStatus();
  auto started = ParquetWriter::Start(common_.program, common_.schema);
  if (!started.ok()) return started.status();
  writer_ = *std::move(started);
  return absl::OkStatus();
}

absl::Status Lane::EndFile() {
  // EndRowGroup may end the file itself.
  if (rows_.rows() > 0) {
    if (auto status = EndRowGroup(); !status.ok()) return status;
  }
  if (writer_ == nullptr) return absl::OkStatus();
  const std::unique_ptr<ParquetWriter> writer = std::move(writer_);
  const auto bytes = writer->Finish();
  if (!bytes.ok()) return bytes.status();
  ExportedFile file{.path = fmt::format("{}/part-{:05}-{:05}.parquet", common_.data, number_, files_.size()),
                    .rows = writer->rows(),
                    .row_groups = writer->row_groups()};
  Reached("export-file");
  const auto put = PutBlob(common_.blobs, fmt::format("{}/{}", common_.id, file.path), *bytes);
  if (!put.ok()) return put.status();
  file.size = put->size;
  file.checksum = put->checksum;
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

}  // namespace kvstore::exports
