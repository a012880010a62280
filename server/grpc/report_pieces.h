#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kvstore/v1/reports.pb.h"
#include "reports/reports.h"

/// Answers to calls on reports, cut into messages. Each Fill adds to an empty message, and returns false when
/// there is nothing left to add. Externally synchronised.
namespace kvstore::server {

/// A message is sent when it has so many bytes.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

/// The names of reports.
class NamePieces {
 public:
  explicit NamePieces(std::vector<std::string> names) : names_(std::move(names)) {}
  bool Fill(v1::ListReportsResponse& message);

 private:
  const std::vector<std::string> names_;
  size_t next_ = 0;
};

/// A report: first what it has but its metrics, with as many of these as fit, then the rest of them, then the
/// values of its segment keys.
class DescriptionPieces {
 public:
  explicit DescriptionPieces(reports::ReportDescription description) : description_(std::move(description)) {}
  bool Fill(v1::GetReportResponse& message);
  /// Returns about how many bytes this takes.
  size_t memory() const;

 private:
  const reports::ReportDescription description_;
  bool begun_ = false;
  size_t next_metric_ = 0;
  size_t next_key_ = 0;
  size_t next_value_ = 0;  // of that key
};

/// The answer to a query: its series, and in the last message the end.
class ResultPieces {
 public:
  explicit ResultPieces(reports::QueryResult result) : result_(std::move(result)) {}
  bool Fill(v1::QueryReportResponse& message);
  size_t memory() const;

 private:
  reports::QueryResult result_;  // without the points that were sent
  size_t next_ = 0;
  bool ended_ = false;
};

}  // namespace kvstore::server
