#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/harness/bench_store.h"
#include "reports/reports.h"
#include "server/server.h"

namespace kvstore::bench {

/// The reports of a dataset through a server of this process, as a client of the same machine has them.
class ServedReports {
 public:
  /// The store must outlive this.
  static absl::StatusOr<ServedReports> Start(BenchStore& store, const std::string& dataset);

  reports::Reports& operator*() { return *reports_; }

 private:
  ServedReports(std::unique_ptr<Server> server, std::unique_ptr<reports::Reports> reports)
      : server_(std::move(server)), reports_(std::move(reports)) {}

  std::unique_ptr<Server> server_;
  std::unique_ptr<reports::Reports> reports_;  // goes before its server
};

}  // namespace kvstore::bench
