#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/flat_json.h"
#include "json/plain_json.h"
#include "reports/json_operations.h"
#include "reports/number.h"
#include "reports/writer.h"

namespace kvstore::reports {

/// A write_points as it stands in its text, read without a tree: for many points a tree takes several times
/// as long as to write them. A value, whose views point into the text.
class PlainWrite {
 public:
  /// Reads a request. nullopt for other operations, for texts that are not plain (json/plain_json.h), and for
  /// mistakes, of which ParseJson and JsonOperations tell.
  static std::optional<PlainWrite> Read(std::string_view text);

  /// The request's "id", which its answer repeats.
  const std::optional<Json>& id() const { return id_; }
  size_t points() const { return points_.size(); }

  /// Writes the points, and returns what the operation of JsonOperations does. nullopt, and nothing is
  /// written, if a point is wrong, of which that operation tells.
  std::optional<JsonAnswer> CarryOut(const ReportsOf& reports_of) const;

 private:
  /// Some of all points' segments or values, from begin to end, exclusive.
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Point {
    uint32_t metric = 0;  // an index of metrics_
    bool many = false;    // it has "values" rather than "value"
    Range segments;       // the same as those of the point before, if that has the same segments
    Range values;         // with `many`
    int64_t time = 0;
    Number number;  // else
  };

  /// Reads one point; false if it is none that is sound.
  ///
  /// flat  room for the values of its fields.
  bool ReadPoint(PlainJson& json, FlatJson& flat);
  bool ReadField(std::string_view name, PlainJson& json, FlatJson& flat, Point& point);
  /// Reads segments, each key once.
  bool ReadSegments(PlainJson& json, Range& segments);
  /// Takes the place of the segments that were read last if the point before has the same.
  void ShareSegments(Range& segments);
  uint32_t MetricOf(std::string_view name);
  /// The points as a batch of the report; nullopt if one does not fit it.
  std::optional<Batch> ToBatch(const ReportInfo& info) const;
  /// Finds the value of each of the report's keys; false if it has not all keys that the range names.
  bool FillSegments(const ReportInfo& info, const Range& range,
                    std::vector<std::optional<std::string_view>>& segments) const;
  /// Adds a point that has "values".
  bool AddMany(Batch& batch, size_t metric, const Point& point, Batch::Segments segments) const;

  std::string dataset_;
  std::string report_;
  WriteBatchOptions options_;
  std::optional<Json> id_;
  std::vector<std::string_view> metrics_;  // each once
  std::map<std::string_view, uint32_t> metric_indexes_;
  std::vector<Point> points_;
  std::vector<std::pair<std::string_view, std::string_view>> segments_;  // key and value
  std::vector<FlatValue> values_;
};

}  // namespace kvstore::reports
