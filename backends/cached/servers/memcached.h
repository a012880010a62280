#pragma once

#include <memory>

#include "backends/cached/servers/server.h"

namespace kvstore::cached {

/// Opens a memcached server (1.6 or later), which is connected to when it is needed.
///
/// A key is an item. With the client flag 0 it is a lease that memcached itself has made (mg with N), with 1
/// a value, with 2 a list of marks. All changes compare CAS numbers, so that none is lost.
std::unique_ptr<Server> OpenMemcached(const ServerOptions& options);

}  // namespace kvstore::cached
