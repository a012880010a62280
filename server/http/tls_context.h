#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "absl/status/statusor.h"
#include "server/call/options.h"

namespace kvstore::server {

/// Reads certificates for connections over TLS 1.2 or 1.3; null if the options name none. With `client_ca` a
/// client must present a certificate of that authority. INVALID_ARGUMENT names the file that cannot be used,
/// and why.
absl::StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeTlsContext(const ServerTls& tls);

}  // namespace kvstore::server
