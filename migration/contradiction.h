#pragma once

#include <string>

#include "backend_api/migration_control.h"
#include "migration/record.h"

/// Whether a migration's record can be true, by what both sides have: a record, or a side, may have been
/// restored from a backup. Asked by each worker before it changes anything, and by `kv migrate repair`.
/// Depends on the arguments alone.
namespace kvstore::migration {

/// Whether clients can read or write on some partition.
bool ServesAnywhere(const EndpointStatus& status);
/// Returns "serving on 9 partitions, importing on 7".
std::string StatesText(const EndpointStatus& status);

/// Whether a side has seen a later worker than the record knows, so that the record is an old one. A worker
/// stores its epoch in the record before it gives it to a side.
bool IsOutdated(const Record& record, const EndpointStatus& truth, const EndpointStatus* copy);
/// Whether what both sides have shows that a cutover was begun, so that either may have writes which the
/// other one lacks.
bool ShowsCutover(const EndpointStatus& truth, const EndpointStatus& copy);
/// Says why a worker that went on as the record says could remove or close the only side that has all
/// acknowledged writes; empty: nothing speaks against it.
///
/// routed  the backend that the catalog names.
/// copy    null if it cannot be asked.
std::string FindContradiction(const Record& record, const std::string& routed, const EndpointStatus& truth,
                              const EndpointStatus* copy);

}  // namespace kvstore::migration
