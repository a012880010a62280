#include "tests/migration/migration_fixture.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvstore::testing {

std::set<std::string> MigrationTest::Traces(const std::string& dataset) {
  std::set<std::string> names;
  for (int i = 0; i < 2; ++i) {
    std::string found =
        SharedFleet()
            .server(static_cast<size_t>(i))
            .Run(fmt::format("SELECT DISTINCT table_name FROM information_schema.tables WHERE table_name "
                             "LIKE '{0}%' AND "
                             "table_schema REGEXP '^(db|mod)[0-9]' UNION SELECT DISTINCT trigger_name FROM "
                             "information_schema.triggers WHERE trigger_name LIKE '{0}%'",
                             dataset));
    for (size_t at = 0; at < found.size();) {
      const size_t end = std::min(found.find('\n', at), found.size());
      if (end > at) names.insert(found.substr(at, end - at));
      at = end + 1;
    }
  }
  return names;
}

}  // namespace kvstore::testing
