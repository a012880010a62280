#include "backend_api/unit_key.h"

#include <fmt/format.h>

#include <cstring>

#include "base/big_endian.h"

namespace kvstore {
namespace {

constexpr char kEscaped = static_cast<char>(0xFF);
constexpr char kEnd = 0x01;

/// How many bytes of a name a message shows at most.
constexpr size_t kShown = 64;

std::string Show(std::string_view bytes) {
  std::string shown = "'";
  for (const char byte : bytes.substr(0, kShown)) {
    const auto code = static_cast<unsigned char>(byte);
    const bool prints = code >= 0x20 && code < 0x7F && byte != '\'' && byte != '\\';
    shown += prints ? std::string(1, byte) : fmt::format("\\x{:02x}", code);
  }
  return shown + (bytes.size() > kShown ? "...'" : "'");
}

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

std::string RowUnitKey(std::string_view row, std::string_view column) {
  std::string key;
  AppendEncoded(key, row);
  AppendEncoded(key, column);
  return key;
}

std::optional<RowUnit> ParseRowUnitKey(std::string_view key) {
  const auto row_bytes = EncodedSize(key);
  if (!row_bytes) return std::nullopt;
  RowUnit unit;
  if (!Decode(key.substr(0, *row_bytes), unit.row)) return std::nullopt;
  const std::string_view rest = key.substr(*row_bytes);
  if (rest.empty()) return unit;
  const auto column_bytes = EncodedSize(rest);
  if (column_bytes != rest.size() || !Decode(rest, unit.column.emplace())) return std::nullopt;
  return unit;
}

std::string ObjectUnitKey(uint64_t id) {
  std::string key;
  AppendBigEndian(key, id);
  return key;
}

std::string MappingUnitKey(uint64_t from, uint64_t to) {
  std::string key;
  AppendBigEndian(key, from);
  AppendBigEndian(key, to);
  return key;
}

bool IsUnitKey(Shape shape, std::string_view key) {
  switch (shape) {
    case Shape::kRows: {
      const auto row = EncodedSize(key);
      return row && EncodedSize(key.substr(*row)) == key.size() - *row;
    }
    case Shape::kObjects:
      return key.size() == sizeof(uint64_t);
    case Shape::kMappings:
      return key.size() == 2 * sizeof(uint64_t);
  }
  return false;
}

std::string ShowUnitKey(Shape shape, std::string_view key) {
  if (!IsUnitKey(shape, key)) return Show(key);
  const auto number = [&](size_t at) { return ReadBigEndian<uint64_t>(key.substr(at, sizeof(uint64_t))); };
  switch (shape) {
    case Shape::kRows: {
      const auto unit = ParseRowUnitKey(key);
      return unit ? fmt::format("row {} column {}", Show(unit->row), Show(unit->column.value_or("")))
                  : Show(key);
    }
    case Shape::kObjects:
      return fmt::format("object {}", number(0));
    case Shape::kMappings:
      return fmt::format("mapping {} -> {}", number(0), number(sizeof(uint64_t)));
  }
  return Show(key);
}

}  // namespace kvstore
