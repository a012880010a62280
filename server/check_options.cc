#include "server/check_options.h"

#include "server/address.h"
#include "server/call/access.h"
#include "server/tls/certificates.h"

namespace kvstore::server {

absl::Status CheckOptions(const ServerOptions& options) {
  if (auto status = CheckAddresses(options); !status.ok()) return status;
  if (auto status = Access::Open(options.tokens).status(); !status.ok()) return status;
  return options.tls.cert.empty() ? absl::OkStatus() : Certificates::Open(options.tls).status();
}

}  // namespace kvstore::server
