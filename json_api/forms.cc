#include "json_api/forms.h"

#include "json_api/operations.h"
#include "reports/json_forms.h"

namespace kvstore::json_api {

const std::map<std::string, JsonForm, std::less<>>& Forms() {
  static const std::map<std::string, JsonForm, std::less<>> kForms = [] {
    std::map<std::string, JsonForm, std::less<>> forms = reports::JsonForms();
#define KV_JSON(name, op) forms.emplace(#op, name##Form());
#include "backend_api/operations.def"
    return forms;
  }();
  return kForms;
}

}  // namespace kvstore::json_api
