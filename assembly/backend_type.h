#pragma once

#include <any>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "assembly/backend_config.h"
#include "assembly/embedded_directory.h"
#include "backend_api/backend.h"
#include "backend_api/write_log.h"

namespace kvstore {

class BackendOpener;
class BackendReader;

/// A type of backend, as the "type" of a configuration names it: how its options are read, and how it is
/// opened. docs/backends.md shows how one is added.
struct BackendType {
  std::string name;
  /// A configuration can have one backend of this type only, wherever it stands.
  bool only_one = false;
  /// OK if this build has the engine; else why a store that has such a backend cannot be opened.
  absl::Status available = absl::OkStatus();
  /// Reads the fields of the type (backend_reader.h), and gives them as the struct that `open` expects in
  /// BackendConfig::options. Mistakes are recorded in the reader; what is returned then does not matter.
  std::function<std::any(BackendReader& reader)> read;
  /// Opens a backend (backend_opener.h). Errors are those of kvstore::Open.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(BackendOpener& opener)> open;
  /// Claims the directory OpenOptions::data, for an engine that keeps its data there; null for others. Called
  /// before `open`, which finds the directory in its opener. Such a type must be `only_one`.
  std::function<absl::StatusOr<std::unique_ptr<EmbeddedDirectory>>(const PlacedBackend& backend,
                                                                   const OpenOptions& options)>
      open_directory;
  /// Opens the log of a backend of this type, to send it to a store of backups; null for types without a log.
  std::function<std::unique_ptr<WriteLog>(Backend& backend)> open_log;
  /// Opens the engine's data in a folder that was restored from a backup, to carry out writes of its log
  /// again (WriteReplay); null for types without a log.
  std::function<absl::StatusOr<std::unique_ptr<WriteReplay>>(const std::filesystem::path& folder)>
      open_replay;
};

/// The types of backends that a configuration may name. Thread-safe as long as nobody calls Add.
class BackendTypes {
 public:
  BackendTypes(std::initializer_list<BackendType> types) : types_(types) {}

  /// Adds a type, whose name must be new (not checked).
  void Add(BackendType type) { types_.push_back(std::move(type)); }

  /// Null if there is none of this name.
  const BackendType* Find(std::string_view name) const;

  /// Returns OK if the types of all backends are known and available, no `only_one` type is used twice, and
  /// the names are unique and not empty. Else INVALID_ARGUMENT with the backend's path, or what the type says
  /// of its availability.
  absl::Status Check(const OpenOptions& options) const;

  /// Returns the error message of a field "type" that names none of these types.
  std::string UnknownTypeMessage(std::string_view name) const;
  /// Returns the error message of a field "type" that names an `only_one` type for the second time.
  static std::string SecondOfTypeMessage(std::string_view name);

 private:
  std::vector<BackendType> types_;
};

}  // namespace kvstore
