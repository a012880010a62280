#include "json_api/forms.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "json_api/execute.h"
#include "json_api/schemas.h"
#include "tests/support/no_store.h"
#include "tests/support/status_matchers.h"

/// Forms say what the operations read.
namespace kvstore::json_api {
namespace {

absl::StatusOr<std::unique_ptr<reports::Reports>> NoReports(const std::string&) {
  return absl::UnimplementedError("there are no reports");
}

TEST(Forms, HaveTheFieldsThatTheOperationsRead) {
  for (const auto& [op, form] : Forms()) {
    testing::NoStore store;
    const Json request = Json::object();
    JsonFields fields(request, "");
    const absl::Status status = ExecuteOperation(op, fields, store, &NoReports).status();
    std::set<std::string, std::less<>> described;
    bool requires_some = false;
    for (const JsonFormField& field : form.request) {
      described.emplace(field.name);
      requires_some = requires_some || field.required;
    }
    EXPECT_EQ(fields.known(), described) << op;
    EXPECT_EQ(status.code(),
              requires_some ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnimplemented)
        << op << ": " << status;
    EXPECT_FALSE(form.summary.empty()) << op;
  }
}

TEST(Forms, SayWhichFieldsAreRequired) {
  for (const auto& [op, form] : Forms()) {
    testing::NoStore store;
    const Json request = Json::object();
    JsonFields fields(request, "");
    ExecuteOperation(op, fields, store, &NoReports).status().IgnoreError();
    // The operation has told the first mistake only.
    const std::string all = "\n" + std::string(fields.FinishAll().message()) + "\n";
    for (const JsonFormField& field : form.request) {
      const bool missing = all.find("\n" + std::string(field.name) + ": missing\n") != std::string::npos;
      EXPECT_EQ(missing, field.required) << op << "." << field.name << all;
    }
  }
}

TEST(Forms, NameTypesThatThereAre) {
  for (const auto& [op, form] : Forms()) {
    for (const auto* fields : {&form.request, &form.answer}) {
      for (const JsonFormField& field : *fields)
        EXPECT_TRUE(Schemas().contains(std::string(field.type)))
            << op << "." << field.name << " " << field.type;
    }
  }
}

}  // namespace
}  // namespace kvstore::json_api
