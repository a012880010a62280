#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Hands an error on to the caller, and goes on otherwise.
///
///   KV_RETURN_IF_ERROR(Check(request));
///   KV_ASSIGN_OR_RETURN(const Row row, ReadRow(key));
#define KV_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (absl::Status kv_status = (expression); !kv_status.ok()) return kv_status; \
  } while (false)

#define KV_JOIN_INNER(a, b) a##b
#define KV_JOIN(a, b) KV_JOIN_INNER(a, b)
#define KV_ASSIGN_OR_RETURN(target, ...) \
  KV_ASSIGN_OR_RETURN_INNER(KV_JOIN(kv_result_, __LINE__), target, (__VA_ARGS__))
#define KV_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return result.status();                   \
  target = *std::move(result)
