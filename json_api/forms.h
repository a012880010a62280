#pragma once

#include <map>
#include <string>

#include "json/json_form.h"

namespace kvstore::json_api {

/// The forms of all operations that ExecuteOperation (execute.h) carries out, by their names.
const std::map<std::string, JsonForm, std::less<>>& Forms();

}  // namespace kvstore::json_api
