#include "reports/answer.h"

#include <algorithm>

#include "kvstore_api/call_scope.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// The groups of a key in the tables of the metrics of an expression; null where a metric has none.
std::vector<const Group*> GroupsOf(const Expression& expression, const MetricTables& tables,
                                   const GroupTable::Key& key) {
  std::vector<const Group*> groups;
  for (const std::string& metric : expression.metrics()) {
    const auto& known = tables.at(metric).groups();
    const auto found = known.find(key);
    groups.push_back(found == known.end() ? nullptr : &found->second);
  }
  return groups;
}

absl::StatusOr<std::optional<Number>> ResultOf(const Aggregate* aggregate, const Function& function) {
  if (aggregate == nullptr) return std::nullopt;
  return aggregate->Result(function);
}

/// Returns what stands for a step: the number that was found there, or the one that fills the gap, if any.
std::optional<Number> Filled(Fill fill, const std::optional<Number>& found,
                             const std::optional<Number>& before) {
  if (found || fill == Fill::kNone) return found;
  return fill == Fill::kZero ? Number::Integer(0) : before;
}

/// Greater ranks first; of equal ones, also of 1 and 1.0, the lesser segments.
bool RanksBefore(const std::optional<Number>& a, const std::optional<Number>& b) {
  return a && b && ExactValue(*a) > ExactValue(*b);
}

}  // namespace

absl::StatusOr<std::vector<TimeValue>> Answer::Points(const Expression& expression,
                                                      const MetricTables& tables, const StepGrid& grid,
                                                      const Key& key) const {
  KV_RETURN_IF_ERROR(CheckCall());
  const std::vector<const Group*> groups = GroupsOf(expression, tables, key);
  std::vector<TimeValue> points;
  // The values of the step before, of each metric and of the expression.
  std::vector<std::optional<Number>> values(groups.size());
  std::optional<Number> value;
  for (size_t step = 0; step < grid.size(); ++step) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const Aggregate* cell = groups[i] == nullptr ? nullptr : groups[i]->Find(step);
      KV_ASSIGN_OR_RETURN(const std::optional<Number> found, ResultOf(cell, query_.function));
      values[i] = Filled(query_.fill, found, values[i]);
    }
    KV_ASSIGN_OR_RETURN(const std::optional<Number> found, expression.Evaluate(values));
    value = Filled(query_.fill, found, value);
    if (value) points.emplace_back(grid.start(step), *value);
  }
  KV_RETURN_IF_ERROR(use_.TakeMemory(sizeof(Made) + points.capacity() * sizeof(TimeValue)));
  return points;
}

void Answer::AddKeys(const Expression& expression, const MetricTables& tables, std::set<Key>& keys) {
  for (const std::string& metric : expression.metrics()) {
    for (const auto& [key, group] : tables.at(metric).groups()) keys.insert(key);
  }
}

absl::Status Answer::Add(const std::string& name, const Expression& expression, const MetricTables& tables,
                         const StepGrid& grid, const MetricTables* compared) {
  std::set<Key> keys;
  AddKeys(expression, tables, keys);
  // A series that has come to its end is what a comparison is to show.
  if (compared != nullptr && !query_.top) AddKeys(expression, *compared, keys);
  if (query_.group_by.empty()) {
    for (uint32_t filter = 0; filter < filters_.size(); ++filter) keys.insert({filter, {}});
  }
  std::vector<Made> made;
  for (const Key& key : keys) {
    Made one{.expression = expressions_, .key = key};
    one.series.metric = name;
    if (!query_.filters.empty()) one.series.filter = query_.filters[key.filter].name;
    if (query_.top) {
      std::vector<std::optional<Number>> values;
      for (const Group* group : GroupsOf(expression, tables, key)) {
        KV_ASSIGN_OR_RETURN(values.emplace_back(),
                            ResultOf(group == nullptr ? nullptr : &group->whole(), query_.top->by));
      }
      KV_ASSIGN_OR_RETURN(one.rank, expression.Evaluate(values));
      if (!one.rank) continue;
    }
    KV_RETURN_IF_ERROR(use_.TakeMemory(sizeof(Made) + one.series.metric.size() + one.series.filter.size()));
    made.push_back(std::move(one));
  }
  KV_RETURN_IF_ERROR(NameSegments(made));
  std::stable_sort(made.begin(), made.end(), [](const Made& a, const Made& b) {
    if (a.key.filter != b.key.filter) return a.key.filter < b.key.filter;
    if (RanksBefore(a.rank, b.rank)) return true;
    if (RanksBefore(b.rank, a.rank)) return false;
    return a.series.segments < b.series.segments;
  });
  if (query_.top) KeepTop(made);
  for (Made& one : made) {
    KV_ASSIGN_OR_RETURN(one.series.points, Points(expression, tables, grid, one.key));
    made_.push_back(std::move(one));
  }
  ++expressions_;
  return absl::OkStatus();
}

absl::Status Answer::NameSegments(std::vector<Made>& made) const {
  for (size_t at = 0; at < filters_.group_keys().size(); ++at) {
    const uint32_t key = filters_.group_keys()[at];
    std::vector<uint32_t> ids;
    for (const Made& one : made) ids.push_back(one.key.segments[at]);
    KV_ASSIGN_OR_RETURN(std::vector<std::string> values, metadata_.ValuesOf(info_.name, key, ids));
    const std::string& name = info_.keys[key].name;
    for (size_t i = 0; i < made.size(); ++i) {
      auto& segments = made[i].series.segments;
      KV_RETURN_IF_ERROR(use_.TakeMemory(sizeof(segments[0]) + name.size() + values[i].size()));
      segments.emplace_back(name, std::move(values[i]));
    }
  }
  return absl::OkStatus();
}

void Answer::KeepTop(std::vector<Made>& made) const {
  std::vector<Made> kept;
  size_t of_filter = 0;
  for (Made& one : made) {
    if (!kept.empty() && kept.back().key.filter != one.key.filter) of_filter = 0;
    if (of_filter++ < query_.top->n) kept.push_back(std::move(one));
  }
  made = std::move(kept);
}

absl::Status Answer::Compare(const std::vector<Expression>& expressions, const MetricTables& tables,
                             const StepGrid& grid) {
  for (Made& one : made_) {
    KV_ASSIGN_OR_RETURN(one.series.compared, Points(expressions[one.expression], tables, grid, one.key));
  }
  return absl::OkStatus();
}

std::vector<ResultSeries> Answer::Take() && {
  std::vector<ResultSeries> series;
  for (Made& one : made_) series.push_back(std::move(one.series));
  return series;
}

}  // namespace kvstore::reports
