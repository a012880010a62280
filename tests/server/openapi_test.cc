#include "server/http/openapi.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "server/call/operation.h"
#include "server/http/json_operations.h"
#include "tests/server/http_fixture.h"

/// The document of the HTTP API.
namespace kvstore {
namespace {

using server::AllJsonOperations;
using server::Operation;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpTest;
using testing::Json;

/// Calls a function for each "$ref" of a document.
void ForEachReference(const Json& json, const std::function<void(const std::string&)>& call) {
  if (!json.is_structured()) return;
  for (const auto& [name, part] : json.items()) {
    if (name == "$ref" && part.is_string()) {
      call(part.get<std::string>());
    } else {
      ForEachReference(part, call);
    }
  }
}

TEST(OpenApi, HasEveryOperation) {
  const Json paths = server::OpenApiDocument()["paths"];
  std::set<Operation> described;
  for (const auto& [name, operation] : AllJsonOperations()) {
    described.insert(operation.operation);
    EXPECT_TRUE(paths["/v1/" + name].contains("post")) << name;
    if (operation.form.get.empty()) continue;
    EXPECT_TRUE(paths[std::string(operation.form.get)].contains("get")) << name;
  }
  EXPECT_TRUE(paths["/v1/exec"].contains("post"));
  EXPECT_TRUE(paths["/v1/openapi.json"].contains("get"));
  EXPECT_TRUE(paths["/v1/changes/{dataset}"].contains("get"));
  described.insert(Operation::kWatchChanges);
  // Lines are the stream of calls, batches the imports; endpoints are for servers among each other.
  described.insert({Operation::kCalls, Operation::kImportRows, Operation::kEndpoint});
  for (size_t i = 0; i < server::kOperationCount; ++i) {
    EXPECT_TRUE(described.contains(static_cast<Operation>(i))) << server::kOperations[i].name;
  }
}

TEST(OpenApi, IsWhatOpenApiWants) {
  const Json document = server::OpenApiDocument();
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_TRUE(document["info"].contains("title") && document["info"].contains("version"));
  ForEachReference(document, [&](const std::string& reference) {
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
  });
  std::set<std::string> ids;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(ids.insert(operation["operationId"]).second) << path;
      EXPECT_TRUE(operation["responses"].contains("200")) << path;
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
      // Each name in the path has its parameter, and the other way round.
      size_t names = 0;
      for (const Json& parameter : operation.value("parameters", Json::array())) {
        if (parameter.value("in", "") != "path") continue;
        EXPECT_NE(path.find("{" + parameter["name"].get<std::string>() + "}"), std::string::npos) << path;
        EXPECT_EQ(parameter["required"], true);
        ++names;
      }
      EXPECT_EQ(names, static_cast<size_t>(std::count(path.begin(), path.end(), '{'))) << path;
    }
  }
}

TEST_F(HttpTest, TheDocumentIsServed) {
  Serve();
  const HttpAnswer answer = HttpClient(port()).Get("/v1/openapi.json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json(), server::OpenApiDocument());
}

}  // namespace
}  // namespace kvstore
