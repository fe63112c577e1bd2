#include "apps/scheduler/authorizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::apps {
namespace {

using io::FakeReply;
using io::HttpRequest;
using nlohmann::json;

constexpr const char* kKnown = R"({"status":{"authenticated":true,"user":{"username":"ann"}}})";
constexpr const char* kAllowed = R"({"status":{"allowed":true}})";

// The hook before an API server that answers each kind of review with one text.
struct Door {
  Door(std::string token_review, std::string access_review)
      : token_answer(std::move(token_review)), access_answer(std::move(access_review)) {
    transport.on_request([this](const HttpRequest& request) {
      return FakeReply::json(status, request.target.ends_with("/tokenreviews") ? token_answer : access_answer);
    });
  }

  int ask(std::string authorization) {
    io::ServerRequest request;
    if (!authorization.empty()) request.headers = {{"authorization", std::move(authorization)}};
    int decision = 0, calls = 0;
    hook(request, [&](int decided) { decision = decided, ++calls; });
    transport.run_for(Duration::seconds(1));
    EXPECT_EQ(calls, 1);
    return decision;
  }
  size_t asked() const { return transport.requests().size(); }

  std::string token_answer, access_answer;
  int status = 201;
  std::vector<std::string> errors{};
  io::FakeTransport transport{};
  kube::Client client{transport};
  io::AuthHook hook = token_review_hook(
      client, transport, {.path = "/metrics", .on_error = [this](const Error& e) { errors.push_back(e.message); }});
};

std::string deep() { return std::string(100'000, '[') + std::string(100'000, ']'); }

TEST(Authorizer, LetsInWhoIsKnownAndMayAndAsksOncePerTokenAndTenSeconds) {
  Door door(kKnown, kAllowed);
  EXPECT_EQ(door.ask("Bearer t"), 200);
  EXPECT_EQ(door.ask("Bearer t"), 200);
  EXPECT_EQ(door.asked(), 2U);
  door.transport.run_for(Duration::seconds(10));
  door.access_answer = R"({"status":{"allowed":false}})";
  EXPECT_EQ(door.ask("Bearer t"), 403);
  door.token_answer = R"({"status":{"authenticated":false,"user":{}}})";
  EXPECT_EQ(door.ask("Bearer t"), 403);
  EXPECT_EQ(door.ask("Bearer u"), 401);
  EXPECT_EQ(door.asked(), 5U);
  EXPECT_TRUE(door.errors.empty());
}

TEST(Authorizer, AsksWhetherThatUserMayGetThePath) {
  Door door(R"({"status":{"authenticated":true,"user":{"username":"ann","uid":"7","groups":["a","b"],
                "extra":{"scopes":["x"],"none":null}}}})",
            kAllowed);
  EXPECT_EQ(door.ask("Bearer t"), 200);
  EXPECT_EQ(json::parse(door.transport.requests().at(0).body).at("spec"), json::parse(R"({"token":"t"})"));
  EXPECT_EQ(json::parse(door.transport.requests().at(1).body).at("spec"),
            json::parse(R"({"user":"ann","uid":"7","groups":["a","b"],"extra":{"scopes":["x"],"none":[]},
                            "nonResourceAttributes":{"path":"/metrics","verb":"get"}})"));
}

TEST(Authorizer, TheSchemeIsWrittenInAnyCase) {
  for (const char* header : {"Bearer t", "bearer t", "BEARER t", "bEaReR   t"}) {
    Door door(kKnown, kAllowed);
    EXPECT_EQ(door.ask(header), 200) << header;
    EXPECT_EQ(json::parse(door.transport.requests().at(0).body).at("spec").at("token"), "t") << header;
  }
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer   ", "Bearert", "Basic dDp0", "t", "Bearer\tt"}) {
    Door door(kKnown, kAllowed);
    EXPECT_EQ(door.ask(header), 401) << header;
    EXPECT_EQ(door.asked(), 0U) << header;
  }
}

// Refused as where there is no answer: with 503, which is not kept, so that the next request asks again.
void expect_trouble(Door& door, const std::string& shown) {
  const size_t before = door.asked();
  EXPECT_EQ(door.ask("Bearer t"), 503) << shown;
  ASSERT_EQ(door.errors.size(), 1U) << shown;
  EXPECT_EQ(door.errors[0].find('\n'), std::string::npos);
  EXPECT_GT(door.asked(), before);
  door.status = 201;
  door.token_answer = kKnown;
  door.access_answer = kAllowed;
  EXPECT_EQ(door.ask("Bearer t"), 200) << shown;
}

TEST(Authorizer, ATokenReviewThatCannotBeUnderstoodLetsNobodyInAndIsNotKept) {
  const std::vector<std::string> answers{
      "",
      "<html>",
      "[]",
      "null",
      "5",
      "{}",
      R"({"status":"x"})",
      R"({"status":null})",
      R"({"status":[]})",
      R"({"status":{"authenticated":"yes"}})",
      R"({"status":{"authenticated":1}})",
      R"({"status":{"authenticated":true}})",
      R"({"status":{"authenticated":true,"user":null}})",
      R"({"status":{"authenticated":true,"user":[]}})",
      R"({"status":{"authenticated":true,"user":"ann"}})",
      R"({"status":{"authenticated":true,"user":{"username":5}}})",
      R"({"status":{"authenticated":true,"user":{"username":""}}})",
      R"({"status":{"authenticated":true,"user":{"username":"ann","uid":5}}})",
      R"({"status":{"authenticated":true,"user":{"username":"ann","groups":"a"}}})",
      R"({"status":{"authenticated":true,"user":{"username":"ann","groups":[5]}}})",
      R"({"status":{"authenticated":true,"user":{"username":"ann","extra":[]}}})",
      R"({"status":{"authenticated":true,"user":{"username":"ann","extra":{"a":"b"}}}})",
      R"({"status":)" + deep() + "}",
      R"({"status":{"authenticated":true,"user":{"username":"ann","extra":{"a":)" + deep() + "}}}}"};
  for (const std::string& answer : answers) {
    Door door(answer, kAllowed);
    expect_trouble(door, answer.substr(0, 100));
    EXPECT_TRUE(door.errors[0].starts_with("the server's answer is not a TokenReview (")) << door.errors[0];
  }
}

TEST(Authorizer, AnAccessReviewThatCannotBeUnderstoodLetsNobodyInAndIsNotKept) {
  for (const std::string& answer :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"status":null})"),
        std::string(R"({"status":"allowed"})"), std::string(R"({"status":{"allowed":"x"}})"),
        std::string(R"({"status":{"allowed":1}})"), R"({"status":)" + deep() + "}"}) {
    Door door(kKnown, answer);
    expect_trouble(door, answer.substr(0, 100));
    EXPECT_TRUE(door.errors[0].starts_with("the server's answer is not a SubjectAccessReview (")) << door.errors[0];
  }
}

TEST(Authorizer, AnErrorOfTheServerLetsNobodyInAndIsNotKept) {
  Door door(R"({"kind":"Status","reason":"Forbidden","message":"no"})", "");
  door.status = 403;
  expect_trouble(door, "403");
  EXPECT_NE(door.errors[0].find("Forbidden"), std::string::npos);
}

// As in the API, where false is what is not said.
TEST(Authorizer, AStatusThatSaysNothingRefuses) {
  Door nobody(R"({"status":{}})", kAllowed);
  EXPECT_EQ(nobody.ask("Bearer t"), 401);
  Door not_allowed(kKnown, R"({"status":{}})");
  EXPECT_EQ(not_allowed.ask("Bearer t"), 403);
}

}  // namespace
}  // namespace berth::apps
