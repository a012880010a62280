#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "catalog/ledger.h"
#include "kvstore_api/zookeeper_options.h"
#include "tests/support/zookeeper_server.h"

/// Helpers that the tests of ledgers share.
namespace kvstore {

constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
constexpr auto kShared = ClaimMode::kShared;
constexpr auto kUpdate = ClaimMode::kUpdate;
constexpr auto kExclusive = ClaimMode::kExclusive;

/// The ZooKeeper of all tests of a program.
inline testing::ZooKeeperServer& Server() {
  static testing::ZooKeeperServer server;
  return server;
}

inline ZooKeeperOptions Options(const std::string& servers) {
  return {.servers = servers, .session_timeout_ms = 4'000, .call_timeout_ms = 2'000};
}

inline Operation Of(const std::string& what, std::vector<Claim> claims) {
  return {.what = what, .claims = std::move(claims)};
}

inline Operation Lasting(const std::string& what, std::vector<Claim> claims) {
  return {.what = what, .lasting = true, .go_on = "kv give it up", .claims = std::move(claims)};
}

}  // namespace kvstore
