#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "kvstore_api/connect.h"
#include "router/router.h"
#include "server/server.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Returns options of a server for tests: it listens on a free port of the loopback interface.
ServerOptions TestServerOptions();

/// A store with an embedded backend, and a server for it, in this process.
class Served {
 public:
  /// Throws std::runtime_error if it cannot be opened or served.
  ///
  /// parts  As in Server::Start. They must outlive this.
  explicit Served(const ServerOptions& options = TestServerOptions(), ServerParts parts = {});
  ~Served();

  /// "127.0.0.1:PORT"
  const std::string& address() const { return server_->addresses().front(); }
  uint16_t port() const;
  Router& router() { return *router_; }
  Server& server() { return *server_; }
  /// Returns a client of the server. Throws std::runtime_error if the options are wrong.
  std::unique_ptr<KVStore> Client(const ConnectOptions& options = {}) const;
  /// Returns a figure of the server, by its name and labels as /metrics has them; -1 if there is none, or no
  /// answer. It is asked for by a call, which is in flight itself.
  ///
  /// token  Of a caller who may read all datasets; empty: none is sent.
  double Metric(const std::string& name, const std::string& token = "") const;
  /// Ends the server, and starts another one on the same store and address.
  void Restart();

 private:
  const TempDir dir_;
  std::unique_ptr<Router> router_;
  ServerOptions options_;
  const ServerParts parts_;
  std::unique_ptr<Server> server_;
};

}  // namespace kvstore::testing
