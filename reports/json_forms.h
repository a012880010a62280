#pragma once

#include <map>
#include <string>

#include "json/json_form.h"

namespace kvstore::reports {

/// The forms of all JsonOperations, by their names.
std::map<std::string, JsonForm, std::less<>> JsonForms();

}  // namespace kvstore::reports
