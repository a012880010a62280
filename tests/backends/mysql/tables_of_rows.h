#pragma once

#include <string>
#include <string_view>

#include "tests/backends/mysql/test_fleet.h"

namespace kvstore::testing {

/// Returns "database.table", where the dataset `events` keeps a row on the shared fleet.
std::string TableOf(std::string_view row);
/// Returns the server of the shared fleet on which a row lies.
MariaDbServer& ServerOf(std::string_view row);

}  // namespace kvstore::testing
