#pragma once

#include <optional>

#include "reports/metadata.h"
#include "reports/number.h"
#include "reports/query.h"
#include "tests/reports/report_model.h"

namespace kvstore::testing {

/// A calculation with the metrics "clicks" and "cost", as text and as the plainest function. A value is
/// nullopt where a metric has none.
struct ModelExpression {
  const char* text;
  std::optional<reports::Number> (*of)(const std::optional<reports::Number>& clicks,
                                       const std::optional<reports::Number>& cost);
};
extern const ModelExpression kExpressions[4];

/// Asks for one of these calculations, with roll-ups and without, and expects what the model says of its
/// metrics, put together step by step.
void ExpectModelsExpression(const reports::Metadata& metadata, const ReportModel& model,
                            const reports::Query& query);

}  // namespace kvstore::testing
