#include "server/resp/commands/key.h"

#include <fmt/format.h>

#include <utility>

#include "base/unescape.h"
#include "kvstore_api/limits.h"
#include "server/resp/commands/numbers.h"

namespace kvstore::server::resp {
namespace {

absl::Status KeyError(std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("key: {}", problem));
}

absl::StatusOr<std::string> UnescapedPart(std::string_view part) {
  std::string bytes;
  if (AppendUnescaped(part, bytes)) {
    return KeyError("a \\ begins neither \\\\ nor \\xNN (two hexadecimal digits)");
  }
  return bytes;
}

}  // namespace

std::string_view DatasetOf(std::string_view key) { return key.substr(0, key.find(':')); }

absl::Status CheckNamesDataset(std::string_view key) {
  if (key.find(':') != std::string_view::npos) return absl::OkStatus();
  return KeyError("it names no dataset; write dataset:row, dataset:row:column or dataset:id");
}

absl::StatusOr<Key> ParseKey(std::string_view text) {
  Key key{.dataset = DatasetOf(text), .row = {}, .column = {}};
  if (auto status = CheckNamesDataset(text); !status.ok()) return status;
  const std::string_view rest = text.substr(key.dataset.size() + 1);
  const std::string_view row = rest.substr(0, rest.find(':'));
  auto bytes = UnescapedPart(row);
  if (!bytes.ok()) return bytes.status();
  key.row = *std::move(bytes);
  if (row.size() == rest.size()) return key;
  const std::string_view column = rest.substr(row.size() + 1);
  if (column.find(':') != std::string_view::npos) {
    return KeyError(
        "it has more than the three parts dataset:row:column; write a ':' within a part as \\x3A");
  }
  bytes = UnescapedPart(column);
  if (!bytes.ok()) return bytes.status();
  key.column = *std::move(bytes);
  return key;
}

absl::StatusOr<Key> ParseRowKey(std::string_view text) {
  auto key = ParseKey(text);
  if (!key.ok() || !key->column) return key;
  return KeyError(
      "it has the three parts dataset:row:column, and this command takes dataset:row; write a ':' within a "
      "row key as \\x3A");
}

absl::StatusOr<Key> ParseColumnKey(std::string_view text) {
  auto key = ParseKey(text);
  if (!key.ok() || key->column) return key;
  return KeyError("it names no column, and this command takes dataset:row:column");
}

absl::StatusOr<IdKey> ParseIdKey(std::string_view text) {
  const std::string_view dataset = DatasetOf(text);
  const auto id =
      dataset.size() == text.size() ? std::nullopt : ParseUnsigned(text.substr(dataset.size() + 1));
  if (!id) {
    return KeyError(fmt::format(
        "it must be dataset:id, and the ID must be a decimal number from 0 to {}, of at most {} digits",
        kMaxId, kMaxDigits));
  }
  return IdKey{.dataset = dataset, .id = *id};
}

std::string RowKey(std::string_view dataset, std::string_view row) {
  std::string key = fmt::format("{}:", dataset);
  for (const char c : row) {
    if (c == ':') {
      key += "\\x3A";
    } else {
      if (c == '\\') key += c;
      key += c;
    }
  }
  return key;
}

std::string IdKeyText(std::string_view dataset, uint64_t id) { return fmt::format("{}:{}", dataset, id); }

}  // namespace kvstore::server::resp
