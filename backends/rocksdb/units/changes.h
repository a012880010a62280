#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_changes.h"
#include "backends/rocksdb/engine/engine.h"

/// The changes of a dataset, for those who follow it: what ChangeLog says was touched, with what it is now.
namespace kvstore::rocks {

/// Opens the log of the family's changes, or drops it, as the family's settings say. Does nothing in an
/// engine that is open to be read only.
absl::Status ApplyChangeLog(Engine& engine, Family& family);

/// Trims the log of the family's changes, if there is one (FamilyHooks::trim_changes).
void TrimChanges(const Family& family);

/// As Backend::StartChanges and Backend::ReadChanges.
absl::StatusOr<std::string> StartChanges(const Family& family, ChangesFrom from);
absl::StatusOr<UnitChanges> ReadChanges(Engine& engine, const Family& family, Shape shape,
                                        std::string_view position, const ChangeLimits& limits);

/// As Backend::SetConsumer, Backend::ListConsumers and Backend::DropConsumer.
absl::Status SetConsumer(const Family& family, std::string_view name, std::string_view position);
absl::StatusOr<std::vector<UnitConsumer>> ListConsumers(const Family& family);
absl::Status DropConsumer(const Family& family, std::string_view name);

}  // namespace kvstore::rocks
