#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

/// What a backend says to a create that meets the data of another dataset of that name: it cannot know which
/// of the two is the one that stays. The router can: it looks into the catalog, and has what nobody names any
/// more removed.
namespace kvstore {

class Backend;
class Catalog;
struct DatasetSpec;

/// FAILED_PRECONDITION. incarnation: DatasetSpec::incarnation of the other one.
absl::Status LeftoverError(std::string_view message, uint64_t incarnation);
/// Whose data it is; nullopt for other errors.
std::optional<uint64_t> LeftoverOf(const absl::Status& status);

/// Creates the dataset, which the catalog has already. What is in its way of one that the catalog names no
/// more is removed if it is empty (Backend::DropLeftover).
absl::Status CreateWithoutLeftovers(Backend& backend, Catalog& catalog, const DatasetSpec& spec);

}  // namespace kvstore
