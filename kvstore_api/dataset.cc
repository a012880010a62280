#include "kvstore_api/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kvstore_api/limits.h"

namespace kvstore {
namespace {

/// Limited so that there is room for what a migration appends to a table's name, and for the name of the
/// lock.
constexpr size_t kMaxTableDigits = 6;

template <typename E, size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<Shape, 3> kShapes = {
    {{Shape::kRows, "rows"}, {Shape::kObjects, "objects"}, {Shape::kMappings, "mappings"}}};
constexpr Names<Durability, 2> kDurabilities = {
    {{Durability::kProcess, "process"}, {Durability::kMachine, "machine"}}};
constexpr Names<Compression, 3> kCompressions = {
    {{Compression::kNone, "none"}, {Compression::kLz4, "lz4"}, {Compression::kZstd, "zstd"}}};

template <typename E, size_t N>
std::string_view NameOf(const Names<E, N>& names, E value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "unknown";
}

template <typename E, size_t N>
std::optional<E> ValueOf(const Names<E, N>& names, std::string_view name) {
  for (const auto& [value, known] : names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

absl::Status ValidateName(std::string_view name) {
  if (name.empty() || name.size() > kMaxDatasetNameBytes) {
    return absl::InvalidArgumentError(
        fmt::format("dataset: a name has 1 to {} bytes, this one has {}", kMaxDatasetNameBytes, name.size()));
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word && (i == 0 || (c != '-' && c != '.'))) {
      return absl::InvalidArgumentError(fmt::format(
          "dataset: a name is made of letters, digits, '_', '-' and '.', and starts with one of the "
          "first three; byte {} is not",
          i));
    }
  }
  if (name == "default") {
    return absl::InvalidArgumentError("dataset: the name 'default' is reserved");
  }
  return absl::OkStatus();
}

/// Checks DatasetSpec::table, which is put into SQL statements unchanged.
absl::Status ValidateTable(const DatasetSpec& spec) {
  if (spec.table.empty()) return absl::OkStatus();
  const std::string_view table = spec.table;
  const std::string_view digits = table.substr(std::min(table.size(), spec.name.size() + 1));
  if (table.starts_with(spec.name + "@") && !digits.empty() && digits.size() <= kMaxTableDigits &&
      digits.find_first_not_of("0123456789") == std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("table: must be '{}@' and a number of at most {} digits", spec.name, kMaxTableDigits));
}

}  // namespace

std::string NumberedTable(std::string_view name, uint64_t number) {
  return fmt::format("{}@{}", name, number);
}

std::string_view Name(Shape shape) { return NameOf(kShapes, shape); }
std::string_view Name(Durability durability) { return NameOf(kDurabilities, durability); }
std::string_view Name(Compression compression) { return NameOf(kCompressions, compression); }

std::optional<Shape> ParseShape(std::string_view name) { return ValueOf(kShapes, name); }
std::optional<Durability> ParseDurability(std::string_view name) { return ValueOf(kDurabilities, name); }
std::optional<Compression> ParseCompression(std::string_view name) { return ValueOf(kCompressions, name); }

absl::Status Validate(const DatasetSpec& spec) {
  if (auto status = ValidateName(spec.name); !status.ok()) return status;
  if (auto status = ValidateTable(spec); !status.ok()) return status;
  const std::string_view shape = Name(spec.shape);
  if (spec.shape == Shape::kObjects) {
    if (spec.type > 1023) {
      return absl::InvalidArgumentError(fmt::format("type: {} is out of range 1..1023", spec.type));
    }
  } else if (spec.type != 0) {
    return absl::InvalidArgumentError(
        fmt::format("type: only datasets of shape objects have a type number, not {}", shape));
  }
  if (spec.ttl_ms > kMaxTimestamp) {
    return absl::InvalidArgumentError(
        fmt::format("ttl_ms: {} is out of range 0..{}", spec.ttl_ms, kMaxTimestamp));
  }
  if (spec.keep_changes_ms > kMaxTimestamp) {
    return absl::InvalidArgumentError(
        fmt::format("keep_changes_ms: {} is out of range 0..{}", spec.keep_changes_ms, kMaxTimestamp));
  }
  if (spec.shape != Shape::kRows && (spec.max_versions != 1 || spec.ttl_ms != 0)) {
    return absl::InvalidArgumentError(fmt::format(
        "max_versions, ttl_ms: only datasets of shape rows have versions and a time to live, not {}", shape));
  }
  return absl::OkStatus();
}

DatasetSpec Apply(const DatasetSpec& spec, const DatasetChange& change) {
  DatasetSpec changed = spec;
  if (change.max_versions) changed.max_versions = *change.max_versions;
  if (change.ttl_ms) changed.ttl_ms = *change.ttl_ms;
  if (change.durability) changed.durability = *change.durability;
  if (change.keep_changes_ms) changed.keep_changes_ms = *change.keep_changes_ms;
  return changed;
}

}  // namespace kvstore
