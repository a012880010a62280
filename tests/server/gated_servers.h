#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "backends/remote/backend.h"
#include "catalog/file_catalog.h"
#include "kvstore_api/connect.h"
#include "router/router.h"
#include "server/server.h"
#include "tests/server/gated_backend.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A server with a GatedBackend, and another one in front of it, whose remote backend it is. Both have the
/// datasets "migrating" and "other", of rows.
class GatedServersTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve(TestServerOptions()); }

  /// Starts both servers; `waits` as in MakeGatedBackend.
  void Serve(const ServerOptions& options, bool waits = false) {
    front_store_.reset();
    front_.reset();
    front_router_.reset();
    store_.reset();
    server_.reset();
    dir_.emplace();
    router_ = OpenRouter("back", MakeGatedBackend(gate_, waits));
    server_ = *Server::Start(*router_, options);
    store_ = *Connect(server_->addresses()[0]);
    // With a catalog of its own. If it shared the server's, the server would itself say that the dataset
    // migrates.
    front_router_ = OpenRouter("front", *RemoteBackend::Connect(server_->addresses()[0], {}));
    front_ = *Server::Start(*front_router_, options);
    front_store_ = *Connect(front_->addresses()[0]);
    for (const char* name : {"migrating", "other"}) ASSERT_OK(front_router_->CreateDataset({.name = name}));
  }

  std::unique_ptr<Router> OpenRouter(const std::string& name, std::unique_ptr<Backend> backend) {
    Router::Backends backends;
    backends.emplace(name, std::move(backend));
    return *Router::Open(std::make_unique<FileCatalog>(dir_->path() / (name + ".json")), std::move(backends),
                         name);
  }

  static absl::Status Put(KVStore& store, const std::string& dataset, const std::string& row,
                          const std::string& value = "v") {
    const CellWrite cell{"c", value, std::nullopt};
    return store.PutRow(dataset, row, {&cell, 1}, {}).status();
  }

  std::optional<TempDir> dir_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<KVStore> store_;
  std::unique_ptr<Router> front_router_;
  std::unique_ptr<Server> front_;
  std::unique_ptr<KVStore> front_store_;
};

}  // namespace kvstore::testing
