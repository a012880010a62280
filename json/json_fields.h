#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "json/json.h"

namespace kvstore {

/// Reads the fields of a JSON object strictly: each must be known, of the right type and in range.
///
///   JsonFields fields(request, "");
///   const std::string row = fields.Bytes("row");
///   const uint64_t limit = fields.OptionalUint("limit", 1, 1000).value_or(100);
///   if (auto status = fields.Finish(); !status.ok()) return status;   // only now trust row and limit
///
/// A getter returns an empty value for a field that is wrong, and records the mistake. Finish reports the
/// first mistake with the field's path, or an unknown field. If the first mistake is that a field is missing,
/// Finish reports an unknown field with it, which may be the missing one, mistyped. FinishAll reports all
/// mistakes. Both ask whether an unknown field was meant to be one that is absent and has a similar name. A
/// field is known once a getter was called for it. The JSON must outlive this object. Externally
/// synchronised.
class JsonFields {
 public:
  /// path  precedes names of fields in messages: "items[3]." or "".
  JsonFields(const Json& object, std::string path);
  JsonFields(const Json&& object, std::string path) = delete;

  // Without "Optional" in its name, a getter records a mistake if the field is missing.

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
  /// The field as it is; null if it is missing.
  const Json* Find(std::string_view name);
  /// A required field as it is; null after a mistake.
  const Json* Require(std::string_view name);
  /// The elements of a required array; none after a mistake.
  const std::vector<Json>& Array(std::string_view name);

  /// Records a mistake found by the caller in a field: "path.name: problem".
  void Fail(std::string_view name, std::string_view problem);
  /// Records the mistake of a nested object, whose message has its path already; does nothing for OK.
  void Fail(const absl::Status& status);
  /// Records all mistakes of a nested object, including unknown fields.
  void FailAll(JsonFields& inner);
  /// The path of a field, as messages show it.
  std::string Path(std::string_view name) const;

  /// OK, or INVALID_ARGUMENT with the first mistake; see above.
  [[nodiscard]] absl::Status Finish();
  /// As Finish, without looking for unknown fields: for callers that do not know yet which fields there may
  /// be.
  [[nodiscard]] absl::Status FirstMistake() const;
  /// As Finish, with a line for each mistake.
  [[nodiscard]] absl::Status FinishAll();

  /// The names of all fields that were asked for.
  const std::set<std::string, std::less<>>& known() const { return known_; }

 private:
  struct Unknown {
    std::string name;
    std::vector<std::string> meant;  ///< Known fields, absent here, that its name resembles.
  };

  /// Returns the fields that are not known, at most so many.
  std::vector<Unknown> FindUnknown(size_t most) const;
  std::string Text(const Unknown& field) const;
  /// Records a mistake for each field that is not known.
  void AddUnknown();

  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;  // fields that were asked for
  std::vector<std::string> mistakes_;
  bool missing_first_ = false;  // the first mistake is that a field is missing
  bool no_object_ = false;      // the JSON is not an object
};

/// Reads a number or a decimal string as an unsigned number; nullopt for anything else.
std::optional<uint64_t> UintFromJson(const Json& json);

}  // namespace kvstore
