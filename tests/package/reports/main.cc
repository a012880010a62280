#include <iostream>
#include <optional>
#include <string_view>
#include <vector>

#include "client/reports.h"
#include "kvstore_api/open.h"
#include "reports/reports.h"

namespace reports = kvstore::reports;

namespace {

/// Writes a point, and prints what a query answers.
absl::Status Use(reports::Reports& flights) {
  reports::ReportInfo wanted{.name = "flights"};
  wanted.keys = {{.name = "carrier"}};
  wanted.metrics = {{.name = "departures"}};
  if (auto status = flights.Create(wanted); !status.ok()) return status;
  const auto info = flights.Info("flights", {"departures"});
  if (!info.ok()) return info.status();
  reports::Batch batch(*info);
  const std::vector<std::optional<std::string_view>> segments = {"UA"};
  if (auto status = batch.Add(0, 1000, segments, reports::Number::Integer(3)); !status.ok()) return status;
  if (const auto written = flights.Write(batch, {}); !written.ok()) return written.status();
  const auto answer =
      flights.Run({.report = "flights", .metrics = {{.name = "departures"}}, .from = 0, .to = 2000});
  if (!answer.ok()) return answer.status();
  std::cout << answer->series.at(0).metric << "=" << answer->series[0].points.at(0).second.integer() << "\n";
  return absl::OkStatus();
}

}  // namespace

/// Uses reports in this process, and behind a server: reports_consumer DIR ADDRESS
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto store = kvstore::Open({.data = argv[1]});
  const auto remote = kvstore::client::ConnectReports(argv[2], {}, "reports");
  if (!store.ok() || !remote.ok()) {
    std::cerr << store.status() << " " << remote.status() << "\n";
    return 1;
  }
  const auto embedded = kvstore::client::OpenReports(**store, "reports");
  for (reports::Reports* one : {embedded.get(), remote->get()}) {
    if (const absl::Status status = Use(*one); !status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
  }
}
