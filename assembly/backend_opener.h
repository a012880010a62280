#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "assembly/backend_config.h"
#include "assembly/backend_type.h"
#include "assembly/embedded_directory.h"
#include "backend_api/backend.h"
#include "catalog/catalog.h"
#include "kvstore_api/open.h"

namespace kvstore {

/// The parts of a store that its backends are opened with. The objects that it refers to must outlive the
/// opening, not the backends.
struct BackendOpenerContext {
  const OpenOptions& options;
  /// Have been checked against the options (BackendTypes::Check).
  const BackendTypes& types;
  /// The contents of the catalog.
  const CatalogContents& contents;
  /// The directory that the type with BackendType::open_directory has claimed; null if no backend has one.
  EmbeddedDirectory* directory = nullptr;
};

/// Opens a backend of a store, and those behind it.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const PlacedBackend& backend,
                                                     const BackendOpenerContext& context);

/// The input of a type's function that opens a backend (BackendType::open).
class BackendOpener {
 public:
  BackendOpener(PlacedBackend backend, const BackendOpenerContext& context)
      : backend_(std::move(backend)), context_(context) {}

  /// The backend to open: its name for datasets, its place in the configuration, its options.
  const PlacedBackend& backend() const { return backend_; }
  const BackendOpenerContext& context() const { return context_; }

  /// The options of the backend, as the struct of its type; INVALID_ARGUMENT if they are another one.
  template <typename Options>
  absl::StatusOr<Options> OptionsAs() const {
    return OptionsOf<Options>(backend_);
  }

  /// Opens the backend that this one stands in front of and that BackendReader::ReadInner has read under this
  /// name. The caller owns it. INVALID_ARGUMENT if the configuration has none of that name.
  absl::StatusOr<std::unique_ptr<Backend>> OpenInner(std::string_view name) const;

 private:
  const PlacedBackend backend_;
  const BackendOpenerContext& context_;
};

}  // namespace kvstore
