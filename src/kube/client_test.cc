#include "kube/client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::kube {
namespace {

using io::FakeReply;
using io::FakeTransport;
using io::HttpRequest;
using nlohmann::json;

struct Fixture {
  explicit Fixture(const FakeReply& reply) {
    transport.on_request([reply](const HttpRequest&) { return reply; });
  }
  Result<std::string> run() {
    transport.run_for(Duration::seconds(60));
    return *answer;
  }
  Client::Done done() {
    return [this](Result<std::string> result) { answer = std::move(result); };
  }
  FakeTransport transport;
  Client client{transport, "berth/test"};
  std::optional<Result<std::string>> answer;
};

TEST(Resource, SpellsPathsOfCoreAndGroups) {
  EXPECT_EQ(kPods.collection(), "/api/v1/pods");
  EXPECT_EQ(kPods.object("ns", "p", "binding"), "/api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(kNodes.object("", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(kLeases.object("kube-system", "x"), "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x");
  EXPECT_EQ(kPods.object("a/b", "c?d"), "/api/v1/namespaces/a%2Fb/pods/c%3Fd");
}

TEST(Client, BindsWithUidAndAnnotations) {
  Fixture f(FakeReply::json(201, R"({"status":"Success"})"));
  f.client.bind({.name_space = "ns", .pod = "p", .uid = "u", .node = "n", .annotations = {{"berth.dev/gpus", "0,1"}}},
                f.done());
  ASSERT_TRUE(f.run());
  const HttpRequest& request = f.transport.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p/binding");
  const json body = json::parse(request.body);
  EXPECT_EQ(body["metadata"]["uid"], "u");
  EXPECT_EQ(body["metadata"]["annotations"]["berth.dev/gpus"], "0,1");
  EXPECT_EQ(body["target"]["name"], "n");
}

TEST(Client, ABindIsNotSentOnceItsFenceHasFallen) {
  Fixture f(FakeReply::json(201, "{}"));
  bool leading = true;
  f.client.bind({.name_space = "ns", .pod = "p", .uid = "u", .node = "n"}, f.done(),
                {.may_start = [&] { return leading; }});
  leading = false;
  const auto answer = f.run();
  ASSERT_FALSE(answer);
  EXPECT_TRUE(io::surely_not_applied(answer.error()));
}

TEST(Client, SaysTheServersReasonAndMessage) {
  Fixture f(FakeReply::json(
      409,
      R"({"kind":"Status","status":"Failure","message":"pod p is already assigned to node \"n\"","reason":"Conflict","code":409})"));
  f.client.get("/x", f.done());
  const auto answer = f.run();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
  EXPECT_EQ(answer.error().http_status, 409);
  EXPECT_EQ(answer.error().message, "GET /x: Conflict: pod p is already assigned to node \"n\"");
}

TEST(Client, MapsStatusesToCodes) {
  const std::pair<int, ErrorCode> cases[] = {{400, ErrorCode::kInvalidInput}, {401, ErrorCode::kUnauthorized},
                                             {403, ErrorCode::kUnauthorized}, {404, ErrorCode::kNotFound},
                                             {410, ErrorCode::kGone},         {422, ErrorCode::kInvalidInput},
                                             {429, ErrorCode::kThrottled},    {500, ErrorCode::kUnavailable},
                                             {503, ErrorCode::kUnavailable},  {504, ErrorCode::kTimeout}};
  for (const auto& [status, code] : cases) EXPECT_EQ(status_error(status, "<html>\n", "x").code, code) << status;
  EXPECT_FALSE(io::surely_not_applied(status_error(500, "", "x")));
  EXPECT_FALSE(io::surely_not_applied(status_error(504, "", "x")));
  EXPECT_TRUE(io::surely_not_applied(status_error(429, "", "x")));
}

TEST(Client, KeepsTerminalEscapesOfForeignAnswersOut) {
  EXPECT_EQ(status_error(502, "\x1b[31mbad\n", "x").message.find('\x1b'), std::string::npos);
}

TEST(Client, ReadsRetryAfterFromHeaderAndFromDetails) {
  Fixture header(FakeReply::json(429, "{}").with_header("retry-after", "3"));
  header.client.get("/x", header.done());
  EXPECT_EQ(header.run().error().retry_after_s, 3);
  Fixture details(FakeReply::json(500, R"({"reason":"ServerTimeout","details":{"retryAfterSeconds":5}})"));
  details.client.get("/x", details.done());
  EXPECT_EQ(details.run().error().retry_after_s, 5);
}

TEST(Client, AConditionForAnotherPodOfTheNameIsAConflict) {
  Fixture f(FakeReply::json(
      422, R"({"reason":"Invalid","message":"Pod \"p\" is invalid: metadata.uid: field is immutable"})"));
  f.client.patch_pod_condition("ns", "p", "u", {.condition = {"PodScheduled", "False", "Unschedulable", "0/8"}},
                               f.done());
  EXPECT_EQ(f.run().error().code, ErrorCode::kConflict);
}

TEST(Client, PatchesOneConditionOfThePodItMeans) {
  Fixture f(FakeReply::json(200, "{}"));
  f.client.patch_pod_condition("ns", "p", "u", {.condition = {"PodScheduled", "False", "Unschedulable", "0/8"}},
                               f.done());
  ASSERT_TRUE(f.run());
  const HttpRequest& request = f.transport.requests().at(0);
  EXPECT_EQ(request.target, "/api/v1/namespaces/ns/pods/p/status");
  const json body = json::parse(request.body);
  EXPECT_EQ(body["metadata"]["uid"], "u");
  EXPECT_EQ(body["status"]["conditions"][0]["type"], "PodScheduled");
  EXPECT_EQ(body["status"]["conditions"].size(), 1u);
}

TEST(StatusError, ABodyThatIsOutOfShapeIsAnErrorOfTheHttpStatus) {
  for (const std::string& body :
       {std::string("[]"), std::string("5"), std::string("null"),
        std::string(R"({"reason":5,"message":[],"code":"x","details":{"retryAfterSeconds":"1"}})"),
        std::string(R"({"reason":{},"message":null,"details":[]})"),
        R"({"details":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}"}) {
    const Error error = status_error(404, body, "GET /x");
    EXPECT_EQ(error.code, ErrorCode::kNotFound);
    EXPECT_TRUE(error.message.starts_with("GET /x: HTTP 404: ")) << error.message;
    EXPECT_EQ(error.retry_after_s, 0);
  }
}

}  // namespace
}  // namespace berth::kube
