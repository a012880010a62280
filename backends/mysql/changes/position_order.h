#pragma once

#include "backends/mysql/changes/log_position.h"

namespace kvstore::mysql {

/// Whether everything that is before the place `one` is before `other`, too.
bool IsAtOrBefore(const LogPlace& one, const LogPlace& other);

/// Whether `one` is a place that whoever is at `other` has passed: it is before it at some pair of servers
/// that both know, and after it at none, and knows no pair that `other` does not. Positions of which each
/// is ahead at some pair are in no order.
bool HasPassed(const ChangePosition& other, const ChangePosition& one);

}  // namespace kvstore::mysql
