#include "backends/rocksdb/cell_key.h"

#include <cstring>

namespace kvstore::rocks {
namespace {

constexpr char kEscaped = static_cast<char>(0xFF);
constexpr char kEnd = 0x01;

}  // namespace

void AppendEncoded(std::string& out, std::string_view bytes) {
  while (true) {
    const size_t zero = bytes.find('\0');
    if (zero == std::string_view::npos) break;
    out.append(bytes.data(), zero + 1);
    out.push_back(kEscaped);
    bytes.remove_prefix(zero + 1);
  }
  out.append(bytes);
  out.push_back('\0');
  out.push_back(kEnd);
}

void AppendTimestamp(std::string& out, uint64_t timestamp) { AppendBigEndian(out, ~timestamp); }

std::optional<size_t> EncodedSize(std::string_view in) {
  size_t from = 0;
  while (true) {
    const size_t zero = in.find('\0', from);
    if (zero == std::string_view::npos || zero + 1 == in.size()) return std::nullopt;
    if (in[zero + 1] == kEnd) return zero + 2;
    if (in[zero + 1] != kEscaped) return std::nullopt;
    from = zero + 2;
  }
}

bool Decode(std::string_view encoded, std::string& out) {
  const size_t size = encoded.size();
  if (size < 2 || encoded[size - 2] != '\0' || encoded[size - 1] != kEnd) return false;
  std::string_view body = encoded.substr(0, size - 2);
  if (body.empty() || std::memchr(body.data(), 0, body.size()) == nullptr) {
    out.assign(body);
    return true;
  }
  out.clear();
  while (true) {
    const size_t zero = body.find('\0');
    if (zero == std::string_view::npos) break;
    if (zero + 1 == body.size() || body[zero + 1] != kEscaped) return false;
    out.append(body.data(), zero + 1);
    body.remove_prefix(zero + 2);
  }
  out.append(body);
  return true;
}

std::string EndOf(std::string_view encoded) {
  std::string end(encoded);
  end.back() = kAfterEnd;
  return end;
}

std::optional<CellKey> ParseCellKey(std::string_view key) {
  const auto row = EncodedSize(key);
  if (!row) return std::nullopt;
  const auto column = EncodedSize(key.substr(*row));
  if (!column || key.size() != *row + *column + kTimestampBytes) return std::nullopt;
  return CellKey{key.substr(0, *row), key.substr(*row, *column), TimestampOf(key)};
}

}  // namespace kvstore::rocks
