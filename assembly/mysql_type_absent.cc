#include "assembly/mysql_type.h"

/// Takes the place of mysql_type.cc where KV_WITH_MYSQL is off.
namespace kvstore {

BackendType MySqlType() {
  return {.name = kMySql,
          .only_one = true,
          .available = absl::FailedPreconditionError(
              "config: names MySQL servers (type mysql), and this program was built without that engine")};
}

}  // namespace kvstore
