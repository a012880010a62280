#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "json/json.h"
#include "reports/json_operations.h"
#include "tests/reports/memory_store.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// Midnight of 1 January 2013, in ms.
inline constexpr int64_t kJanuary = 1'356'998'400'000;
inline constexpr int64_t kDay = 86'400'000;

/// Creates the report "flights".
inline constexpr char kCreateFlights[] =
    R"({"op":"create_report","report":"flights","segment_keys":["carrier","origin"],
        "metrics":[{"name":"departures"},{"name":"delay","kind":"distribution"},{"name":"planes","kind":"distinct"},
                   {"name":"late"}],
        "resolution":"1h","period":"30d","salts":4,"retention":"0"})";

/// Carries out operations on reports as JSON, with a store in memory that has the report "flights".
class ReportsJson : public ::testing::Test {
 protected:
  void SetUp() override { Ok(kCreateFlights); }

  reports::JsonAnswer Do(const std::string& text) { return DoIn(store_, text); }
  static reports::JsonAnswer DoIn(MemoryStore& store, const std::string& text) {
    const auto request = ParseJson(text);
    if (!request.ok()) return request.status();
    JsonFields fields(*request, "");
    const auto operation = reports::JsonOperations().find(fields.String("op"));
    if (operation == reports::JsonOperations().end()) return absl::UnimplementedError("no such operation");
    return operation->second(
        fields, [&store](const std::string& dataset) { return reports::LocalReports(store, dataset); });
  }
  Json Ok(const std::string& text) {
    auto answer = Do(text);
    EXPECT_OK(answer) << text;
    return answer.ok() ? *answer : Json();
  }
  void Fails(const std::string& text, absl::StatusCode code, const std::string& message) {
    EXPECT_THAT(Do(text), FailsWith(code, message)) << text;
  }
  void Invalid(const std::string& text, const std::string& message) {
    Fails(text, absl::StatusCode::kInvalidArgument, message);
  }
  /// Departures of some carriers from some airports on three days of January 2013.
  void Load() {
    std::string points;
    int value = 1;
    for (const char* day : {"2013-01-01", "2013-01-02", "2013-01-04"}) {
      for (const char* carrier : {"UA", "AA", "B6"}) {
        for (const char* origin : {"EWR", "JFK"}) {
          points += std::string(points.empty() ? "" : ",") + R"({"metric":"departures","time":")" + day +
                    R"(T05:00:00Z","segments":{"carrier":")" + carrier + R"(","origin":")" + origin +
                    R"("},"value":)" + std::to_string(value++) + "}";
        }
      }
    }
    EXPECT_EQ(Ok(R"({"op":"write_points","report":"flights","points":[)" + points + "]}")["written"], 18);
  }
  /// The series of a query of January, with further fields.
  Json Query(const std::string& fields) {
    return Ok(R"({"op":"query_report","report":"flights","from":"2013-01-01","to":"2013-02-01",)" + fields +
              "}")["series"];
  }

  MemoryStore store_;
};

}  // namespace kvstore::testing
