#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "json/json_fields.h"
#include "kvstore_api/open.h"

/// How the fields of a configuration file are read. All of these record mistakes in the JsonFields, with the
/// path of the field, and then give an empty value.
namespace kvstore {

/// Calls `read(JsonFields&)` with a nested object, if the field is there, and records all of its mistakes,
/// unknown fields among them.
template <typename Read>
void OptionalObject(JsonFields& fields, std::string_view name, Read read) {
  const Json* json = fields.Find(name);
  if (json == nullptr) return;
  if (!json->is_object()) return fields.Fail(name, "must be an object");
  JsonFields inner(*json, fields.Path(name) + ".");
  read(inner);
  fields.FailAll(inner);
}

/// Sets `value` if the field is there.
template <typename T>
void ReadUint(JsonFields& fields, std::string_view name, uint64_t min, uint64_t max, T& value) {
  if (const auto given = fields.OptionalUint(name, min, max)) value = static_cast<T>(*given);
}

/// The path in a field; a relative one begins at `folder`. Empty if the field is missing or empty.
std::filesystem::path PathIn(JsonFields& fields, std::string_view name, const std::filesystem::path& folder);

/// Sets `root` from the field "root", a node of ZooKeeper, if the field is there.
void ReadRoot(JsonFields& fields, std::string& root);

/// A secret: in the field `name` itself, in a file that NAME_file names, or in the environment variable that
/// NAME_env names. Empty if none of the three is there.
std::string ReadSecret(JsonFields& fields, const std::string& name, const std::filesystem::path& folder);

/// The field "tls" of a client's side: ca, cert, key, server_name. Nullopt if it is not there.
std::optional<ClientTls> ReadClientTls(JsonFields& fields, const std::filesystem::path& folder);

/// The options of the embedded engine, which may stand in its backend or at the top of the file.
void ReadRocksDbOptions(JsonFields& fields, RocksDbOptions& options);

}  // namespace kvstore
