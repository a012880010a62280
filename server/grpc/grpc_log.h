#pragma once

namespace kvstore::server {

/// Has what gRPC logs about its errors written as lines of the log, at most 10 a second and each cut at 500
/// bytes: clients that are not authenticated can cause such errors, for example by TLS handshakes that fail.
/// For the whole process, from now on.
void LimitGrpcLog();

}  // namespace kvstore::server
