#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "absl/status/statusor.h"
#include "server/call/options.h"

namespace kvstore::server::resp {

/// Returns what TLS connections of a server share; null if its connections are not encrypted.
/// INVALID_ARGUMENT names a file that cannot be used.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeTlsContext(const ServerTls& tls);

}  // namespace kvstore::server::resp
