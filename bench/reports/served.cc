#include "bench/reports/served.h"

#include <utility>

#include "client/reports.h"

namespace kvstore::bench {

absl::StatusOr<ServedReports> ServedReports::Start(BenchStore& store, const std::string& dataset) {
  ServerOptions options;
  options.listen = {"127.0.0.1:0"};
  options.slow_ms = 0;              // A log would be part of what is measured,
  options.reports.maintain_ms = 0;  // and so would work in the background.
  auto server = Server::Start(store.router(), options);
  if (!server.ok()) return server.status();
  auto reports = client::ConnectReports((*server)->addresses().front(), {}, dataset);
  if (!reports.ok()) return reports.status();
  return ServedReports(*std::move(server), *std::move(reports));
}

}  // namespace kvstore::bench
