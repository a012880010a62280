#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/http/openapi.h"
#include "tests/server/http_client.h"
#include "tests/server/json_schema.h"
#include "tests/server/served.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

using Json = nlohmann::json;

/// Returns the fields of a put_row of one cell, in the column "c".
inline Json PutOf(const std::string& dataset, const std::string& row, const std::string& value = "v") {
  return {{"dataset", dataset}, {"row", row}, {"items", {{{"column", "c"}, {"value", value}}}}};
}

/// A server with the HTTP API, the datasets "rows", "pins" (objects) and "boards" (mappings), and a client.
class HttpTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.http_api = "127.0.0.1:0";
    return options;
  }

  void Serve(const ServerOptions& options = Options(), ServerParts parts = {}) {
    served_ = std::make_unique<Served>(options, std::move(parts));
    ASSERT_OK(served_->router().CreateDataset({.name = "rows", .max_versions = 0}));
    ASSERT_OK(served_->router().CreateDataset({.name = "pins", .shape = Shape::kObjects}));
    ASSERT_OK(served_->router().CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  }

  uint16_t port() const { return static_cast<uint16_t>(served_->server().http_api_port()); }

  /// Asks for an operation over a connection of its own, and checks request and answer against the document.
  Json Ok(const std::string& operation, const Json& fields, const HttpHeaders& headers = {}) {
    const Json& post = document_["paths"]["/v1/" + operation]["post"];
    EXPECT_EQ(Mismatch(document_, post["requestBody"]["content"]["application/json"]["schema"], fields), "")
        << operation << " " << fields;
    const HttpAnswer answer = HttpClient(port()).Post(operation, fields, headers);
    EXPECT_EQ(answer.status, 200) << operation << " " << fields << "\n" << answer.body;
    EXPECT_EQ(
        Mismatch(document_, post["responses"]["200"]["content"]["application/json"]["schema"], answer.json()),
        "")
        << operation << " " << answer.body;
    return answer.json();
  }
  /// Asks by a GET.
  Json OkGet(const std::string& target) {
    const HttpAnswer answer = HttpClient(port()).Get(target);
    EXPECT_EQ(answer.status, 200) << target << "\n" << answer.body;
    return answer.json();
  }
  /// Expects that an operation fails, with an error of the document's form.
  void Fails(const std::string& operation, const Json& fields, int status, const std::string& code,
             const std::string& text = "") {
    Refused(HttpClient(port()).Post(operation, fields), status, code, text);
  }
  void Refused(const HttpAnswer& answer, int status, const std::string& code, const std::string& text = "") {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(answer.code(), code) << answer.body;
    EXPECT_NE(answer.message().find(text), std::string::npos) << answer.body;
    EXPECT_EQ(Mismatch(document_, {{"$ref", "#/components/schemas/Error"}}, answer.json()), "")
        << answer.body;
  }

  void PutCell(const std::string& row, const std::string& value = "v") {
    Ok("put_row", {{"dataset", "rows"}, {"row", row}, {"items", {{{"column", "c"}, {"value", value}}}}});
  }

  const Json document_ = server::OpenApiDocument();
  std::unique_ptr<Served> served_;
};

}  // namespace kvstore::testing
