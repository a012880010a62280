#include "assembly/mysql_type.h"

/// Takes the place of mysql_type.cc where KV_WITH_MYSQL is off.
namespace kvstore {

BackendType MySqlType() {
  return {.name = kMySql,
          .only_one = true,
          .available = absl::FailedPreconditionError(
              "config: a backend has the type mysql, but this program was built without it "
              "(KV_WITH_MYSQL=OFF); use a build that has it, or remove the backend")};
}

}  // namespace kvstore
