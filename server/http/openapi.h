#pragma once

#include <string>

#include "json/json.h"

namespace kvstore::server {

/// Returns the description of the HTTP API as a document of OpenAPI 3.1, made from AllJsonOperations.
Json OpenApiDocument();

}  // namespace kvstore::server
