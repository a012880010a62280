#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvstore_api/json.h"

namespace kvstore {

/// Reads the fields of a JSON object strictly: each must be known, of the right type and in range.
///
///   JsonFields fields(request, "");
///   const std::string row = fields.Bytes("row");
///   const uint64_t limit = fields.OptionalUint("limit", 1, 1000).value_or(100);
///   if (auto status = fields.Finish(); !status.ok()) return status;   // only now trust row and limit
///
/// A getter gives an empty value for a field that is wrong; Finish reports the first mistake, with the
/// field's path, or an unknown field, and FinishAll all of them. The JSON must outlive this. Externally
/// synchronised.
class JsonFields {
 public:
  /// `path` is put before the field's name in messages: "items[3]." or "".
  JsonFields(const Json& object, std::string path);
  JsonFields(const Json&& object, std::string path) = delete;

  std::string String(std::string_view name);
  std::optional<std::string> OptionalString(std::string_view name);
  /// A string or {"b64": ...}; see bytes_json.h.
  std::string Bytes(std::string_view name);
  std::optional<std::string> OptionalBytes(std::string_view name);
  std::optional<std::vector<std::string>> OptionalBytesList(std::string_view name);
  /// A number or its decimal string.
  uint64_t Uint(std::string_view name, uint64_t min, uint64_t max);
  std::optional<uint64_t> OptionalUint(std::string_view name, uint64_t min, uint64_t max);
  std::optional<bool> OptionalBool(std::string_view name);
  /// The field as it is, null if it is not there.
  const Json* Find(std::string_view name);
  /// A field that must be there, as it is; null if it is not.
  const Json* Require(std::string_view name);
  /// The elements of a field that must be there and be an array; none after a mistake.
  const std::vector<Json>& Array(std::string_view name);

  /// Records a mistake found by the caller in a field: "path.name: problem".
  void Fail(std::string_view name, std::string_view problem);
  /// Records the mistake of a nested object, which names its own path.
  void Fail(const absl::Status& status);
  /// Records all mistakes of a nested object, unknown fields among them.
  void FailAll(JsonFields& inner);
  std::string Path(std::string_view name) const;

  [[nodiscard]] absl::Status Finish();
  /// As Finish, with a line for each mistake.
  [[nodiscard]] absl::Status FinishAll();

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  void AddUnknown();

  std::vector<std::string> mistakes_;
  bool no_object_ = false;
};

/// A number or a decimal string as an unsigned number; nullopt for anything else.
std::optional<uint64_t> UintFromJson(const Json& json);

}  // namespace kvstore
