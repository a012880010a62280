#include "backend_api/marker.h"

#include <boost/crc.hpp>
#include <optional>

#include "absl/strings/escaping.h"
#include "base/big_endian.h"
#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

constexpr char kFormat = 1;
constexpr char kRow = 'r';
constexpr char kScan = 's';
constexpr char kScanInOrder = 'o';
constexpr char kMapping = 'm';
constexpr char kObjectScan = 'i';
constexpr char kMappingScan = 'p';
constexpr char kChanges = 'c';

// CRC-64/XZ.
using Crc64 = boost::crc_optimal<64, 0x42F0E1EBA9EA3693, ~uint64_t{0}, ~uint64_t{0}, true, true>;

uint64_t Checksum(std::string_view body, std::string_view scope) {
  Crc64 crc;
  crc.process_bytes(body.data(), body.size());
  crc.process_bytes(scope.data(), scope.size());
  return crc.checksum();
}

std::string Seal(std::string body, std::string_view scope) {
  AppendBigEndian(body, Checksum(body, scope));
  return absl::WebSafeBase64Escape(body);
}

absl::Status Refused() {
  return absl::InvalidArgumentError(
      "marker: this read has not returned it: it belongs to another dataset or row, or was changed");
}

/// Returns the position inside a token of `kind`, without header and checksum.
absl::StatusOr<std::string> Open(char kind, std::string_view scope, std::string_view marker) {
  std::string body;
  const absl::string_view text(marker.data(), marker.size());
  if (!absl::WebSafeBase64Unescape(text, &body) || absl::WebSafeBase64Escape(body) != text) return Refused();
  if (body.size() < 2 + sizeof(uint64_t) || body[0] != kFormat || body[1] != kind) return Refused();
  const size_t end = body.size() - sizeof(uint64_t);
  if (ReadBigEndian<uint64_t>(std::string_view(body).substr(end)) !=
      Checksum(std::string_view(body).substr(0, end), scope)) {
    return Refused();
  }
  return body.substr(2, end - 2);
}

void AppendPosition(std::string& out, const RowPosition& position) {
  AppendBigEndian(out, position.cells);
  AppendBigEndian(out, position.timestamp);
  out.append(position.column);
}

std::optional<RowPosition> ReadPosition(std::string_view in) {
  if (in.size() < 12 || in.size() > 12 + kMaxColumnNameBytes) return std::nullopt;
  RowPosition position;
  position.cells = ReadBigEndian<uint32_t>(in);
  position.timestamp = ReadBigEndian<uint64_t>(in.substr(4));
  position.column = in.substr(12);
  return position;
}

/// Removes bytes that follow their size from the front of `in`, and returns them in `out`. False if they are
/// malformed or empty.
bool ConsumeSized(std::string& in, std::string& out) {
  if (in.size() < 2) return false;
  const size_t size = ReadBigEndian<uint16_t>(in);
  if (size == 0 || in.size() < 2 + size) return false;
  out = in.substr(2, size);
  in.erase(0, 2 + size);
  return true;
}

std::string Header(char kind) { return {kFormat, kind}; }

std::string RowScope(uint64_t incarnation, std::string_view row) {
  std::string scope;
  AppendBigEndian(scope, incarnation);
  scope.append(row);
  return scope;
}

std::string MappingScope(uint64_t incarnation, uint64_t from, bool descending) {
  std::string scope;
  AppendBigEndian(scope, incarnation);
  AppendBigEndian(scope, from);
  scope.push_back(descending ? 1 : 0);
  return scope;
}

}  // namespace

std::string SealRowMarker(uint64_t incarnation, std::string_view row, const RowPosition& position) {
  std::string body = Header(kRow);
  AppendPosition(body, position);
  return Seal(std::move(body), RowScope(incarnation, row));
}

absl::StatusOr<RowPosition> OpenRowMarker(uint64_t incarnation, std::string_view row,
                                          std::string_view marker) {
  const auto body = Open(kRow, RowScope(incarnation, row), marker);
  if (!body.ok()) return body.status();
  auto position = ReadPosition(*body);
  if (!position) return Refused();
  return *std::move(position);
}

std::string SealScanMarker(uint64_t incarnation, const ScanPosition& position) {
  std::string body = Header(position.order.empty() ? kScan : kScanInOrder);
  if (!position.order.empty()) {
    AppendBigEndian(body, static_cast<uint16_t>(position.order.size()));
    body.append(position.order);
  }
  AppendBigEndian(body, static_cast<uint16_t>(position.row.size()));
  body.append(position.row);
  if (position.inside) AppendPosition(body, *position.inside);
  return Seal(std::move(body), RowScope(incarnation, ""));
}

absl::StatusOr<ScanPosition> OpenScanMarker(uint64_t incarnation, std::string_view marker) {
  ScanPosition position;
  auto body = Open(kScan, RowScope(incarnation, ""), marker);
  if (!body.ok()) {
    body = Open(kScanInOrder, RowScope(incarnation, ""), marker);
    if (!body.ok() || !ConsumeSized(*body, position.order)) return Refused();
  }
  if (!ConsumeSized(*body, position.row) || position.row.size() > kMaxRowKeyBytes) return Refused();
  if (!body->empty()) {
    position.inside = ReadPosition(*body);
    if (!position.inside) return Refused();
  }
  return position;
}

std::string SealMappingMarker(uint64_t incarnation, uint64_t from, bool descending,
                              const MappingEntry& last) {
  std::string body = Header(kMapping);
  AppendBigEndian(body, last.sequence);
  AppendBigEndian(body, last.to);
  return Seal(std::move(body), MappingScope(incarnation, from, descending));
}

absl::StatusOr<MappingEntry> OpenMappingMarker(uint64_t incarnation, uint64_t from, bool descending,
                                               std::string_view marker) {
  const auto body = Open(kMapping, MappingScope(incarnation, from, descending), marker);
  if (!body.ok()) return body.status();
  if (body->size() != 16) return Refused();
  MappingEntry last;
  last.sequence = ReadBigEndian<uint64_t>(*body);
  last.to = ReadBigEndian<uint64_t>(std::string_view(*body).substr(8));
  return last;
}

std::string SealObjectScanMarker(uint64_t incarnation, uint64_t next) {
  std::string body = Header(kObjectScan);
  AppendBigEndian(body, next);
  return Seal(std::move(body), RowScope(incarnation, ""));
}

absl::StatusOr<uint64_t> OpenObjectScanMarker(uint64_t incarnation, std::string_view marker) {
  const auto body = Open(kObjectScan, RowScope(incarnation, ""), marker);
  if (!body.ok()) return body.status();
  if (body->size() != sizeof(uint64_t)) return Refused();
  return ReadBigEndian<uint64_t>(*body);
}

std::string SealMappingScanMarker(uint64_t incarnation, const MappingPosition& next) {
  std::string body = Header(kMappingScan);
  AppendBigEndian(body, next.from);
  AppendBigEndian(body, next.to);
  return Seal(std::move(body), RowScope(incarnation, ""));
}

absl::StatusOr<MappingPosition> OpenMappingScanMarker(uint64_t incarnation, std::string_view marker) {
  const auto body = Open(kMappingScan, RowScope(incarnation, ""), marker);
  if (!body.ok()) return body.status();
  if (body->size() != 2 * sizeof(uint64_t)) return Refused();
  return MappingPosition{.from = ReadBigEndian<uint64_t>(*body),
                         .to = ReadBigEndian<uint64_t>(std::string_view(*body).substr(sizeof(uint64_t)))};
}

std::string SealChangesToken(uint64_t incarnation, std::string_view position) {
  return Seal(Header(kChanges).append(position), RowScope(incarnation, ""));
}

absl::StatusOr<std::string> OpenChangesToken(uint64_t incarnation, std::string_view token) {
  auto body = Open(kChanges, RowScope(incarnation, ""), token);
  if (body.ok()) return body;
  return absl::InvalidArgumentError(
      "from: must be a token that changes of this dataset have, begin, or now; this one belongs to another "
      "dataset, or was changed");
}

}  // namespace kvstore
