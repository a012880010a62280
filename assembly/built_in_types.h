#pragma once

namespace kvstore {

class BackendTypes;

/// The types of backends that this program knows (backend_type.h). Those whose engine the build leaves out
/// (KV_WITH_...) are known and not available. Thread-safe; the types live as long as the process.
const BackendTypes& BuiltInBackendTypes();

}  // namespace kvstore
