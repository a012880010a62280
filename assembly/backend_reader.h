#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "assembly/backend_type.h"
#include "json/json_fields.h"
#include "kvstore_api/open.h"

namespace kvstore {

/// The parts of a configuration file outside of its backends that are needed to read these.
struct BackendReaderContext {
  /// The types that may be named.
  const BackendTypes& types;
  /// Relative paths begin here.
  const std::filesystem::path& folder;
  /// The field "zookeeper" at the top.
  std::optional<Coordination> coordination = {};
  /// The fields of the embedded engine at the top: the defaults of those in its backend.
  RocksDbOptions rocksdb = {};
  /// The `only_one` types that have been read so far.
  std::set<std::string> seen = {};
};

/// The input of a type's function that reads the fields of a backend (BackendType::read). A field that nobody
/// reads is refused afterwards, by name.
class BackendReader {
 public:
  /// Reads one backend: its type from the field "type", and the fields of that type. Nullopt if the type is
  /// not known or is missing; mistakes are recorded in `fields` in any case.
  static std::optional<BackendConfig> Read(std::string name, JsonFields& fields,
                                           BackendReaderContext& context);
  /// The same for an object without a field "type". `type` must be known.
  static BackendConfig ReadAs(const std::string& type, std::string name, JsonFields& fields,
                              BackendReaderContext& context);

  /// The fields of this backend.
  JsonFields& fields() { return fields_; }
  const BackendReaderContext& context() const { return context_; }

  /// Reads a backend that this one stands in front of: the object, with a "type", that must be in the field
  /// `name`. BackendOpener::OpenInner opens it by the same name.
  void ReadInner(std::string_view name);

 private:
  BackendReader(JsonFields& fields, BackendReaderContext& context) : fields_(fields), context_(context) {}

  JsonFields& fields_;
  BackendReaderContext& context_;
  std::vector<BackendConfig> inner_;
};

}  // namespace kvstore
