#pragma once

#include "json/json.h"

namespace kvstore::json_api {

/// The types of fields that forms name (json/json_form.h), as schemas of OpenAPI 3.1, by their names. They
/// refer to each other by "#/components/schemas/NAME".
const Json& Schemas();

}  // namespace kvstore::json_api
