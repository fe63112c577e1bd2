#include "kube/reflector.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/protobuf_bytes.h"
#include "api/protobuf_tables.h"
#include "io/fake_transport.h"
#include "kube/watch_frames.h"

namespace berth::kube {
namespace {

using io::FakeReply;
using io::FakeTransport;
using io::HttpRequest;
using nlohmann::json;

// What a test decodes: the name; an object with "bad" does not decode.
Result<std::string> decode_name(std::string_view text) {
  const json object = json::parse(text);
  if (object.contains("bad")) return fail(ErrorCode::kInvalidInput, "bad on purpose");
  return object["metadata"]["name"].get<std::string>();
}

json pod(const std::string& name, int version) {
  return {
      {"metadata",
       {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}, {"resourceVersion", std::to_string(version)}}}};
}

std::string frame(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}

class ReflectorTest : public testing::Test {
 protected:
  void SetUp() override {
    transport_.on_request([this](const HttpRequest& request) { return list(request); });
    open({.resource = kPods});
  }

  void open(ReflectorOptions options) {
    reflector_ = std::make_unique<Reflector<std::string>>(
        client_, std::move(options), &decode_name,
        [this](std::vector<WatchUpdate<std::string>> batch) { take(std::move(batch)); });
  }

  // Pages of two; the continue token is the next index.
  FakeReply list(const HttpRequest& request) {
    lists_.push_back(request.target);
    if (!failures_.empty()) {
      FakeReply reply = failures_.front();
      failures_.erase(failures_.begin());
      return reply;
    }
    const size_t at = request.target.find("continue=");
    const size_t from = at == std::string::npos ? 0 : std::stoul(request.target.substr(at + 9));
    json page = {{"kind", "PodList"},
                 {"apiVersion", "v1"},
                 {"metadata", {{"resourceVersion", std::to_string(version_)}}},
                 {"items", json::array()}};
    for (size_t i = from; i < std::min(from + 2, store_.size()); ++i) page["items"].push_back(store_[i]);
    if (from + 2 < store_.size()) page["metadata"]["continue"] = std::to_string(from + 2);
    return FakeReply::json(200, page.dump());
  }

  void take(std::vector<WatchUpdate<std::string>> batch) {
    ++batches_;
    for (auto& update : batch) {
      if (auto* list = std::get_if<ListReplaced<std::string>>(&update)) {
        std::string names;
        for (const std::string& name : list->objects) names += name + ",";
        log_.push_back("list " + names + "@" + list->resource_version + (list->went_back ? " back" : ""));
      } else if (auto* up = std::get_if<Upserted<std::string>>(&update)) {
        log_.push_back("up " + up->object);
      } else if (auto* gone = std::get_if<Deleted<std::string>>(&update)) {
        log_.push_back("del " + gone->object);
      } else {
        const auto& bad = std::get<Malformed>(update);
        log_.push_back("bad " + bad.name_space + "/" + bad.name + "/" + bad.uid + (bad.deleted ? " deleted" : "") +
                       (bad.node_name.empty() ? "" : " on " + bad.node_name) + (bad.terminal ? " over" : ""));
      }
    }
  }

  void start() {
    reflector_->start();
    transport_.run_for(Duration::millis(1));
  }
  std::vector<std::string> drain() { return std::exchange(log_, {}); }
  size_t watches() const { return transport_.streams().size(); }
  std::string watch_target() const { return transport_.streams().rbegin()->second.request.target; }

  FakeTransport transport_;
  Client client_{transport_};
  std::vector<json> store_{pod("a", 1), pod("b", 2), pod("c", 3)};
  int version_ = 10;
  std::vector<FakeReply> failures_;
  std::vector<std::string> lists_, log_;
  int batches_ = 0;
  std::unique_ptr<Reflector<std::string>> reflector_;
};

using Log = std::vector<std::string>;

TEST_F(ReflectorTest, ListsInPagesThenWatchesFromTheListsVersion) {
  start();
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
  EXPECT_EQ(lists_.size(), 2u);
  EXPECT_NE(lists_[0].find("/api/v1/pods?limit=500"), std::string::npos);
  ASSERT_EQ(watches(), 1u);
  EXPECT_NE(watch_target().find("resourceVersion=10"), std::string::npos);
  EXPECT_NE(watch_target().find("allowWatchBookmarks=true"), std::string::npos);
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, DeliversChangesCutAnywhereIntoChunks) {
  start();
  drain();
  const std::string text =
      frame("ADDED", pod("d", 11)) + frame("MODIFIED", pod("a", 12)) + frame("DELETED", pod("b", 13));
  for (size_t at = 0; at < text.size(); at += 5) transport_.push("watch", text.substr(at, 5));
  EXPECT_EQ(drain(), (Log{"up d", "up a", "del b"}));
}

TEST_F(ReflectorTest, OneChunkIsOneBatch) {
  start();
  batches_ = 0;
  transport_.push("watch", frame("ADDED", pod("d", 11)) + frame("ADDED", pod("e", 12)));
  EXPECT_EQ(batches_, 1);
}

TEST_F(ReflectorTest, WatchesOnFromTheLastBookmark) {
  start();
  transport_.push("watch", frame("BOOKMARK", {{"metadata", {{"resourceVersion", "50"}}}}));
  transport_.finish("watch");
  transport_.run_for(Duration::seconds(2));
  ASSERT_EQ(watches(), 1u);
  EXPECT_NE(watch_target().find("resourceVersion=50"), std::string::npos);
  EXPECT_EQ(lists_.size(), 2u);  // the pages of the first list
}

TEST_F(ReflectorTest, ALostConnectionWatchesOnWithoutAList) {
  start();
  transport_.push("watch", frame("ADDED", pod("d", 11)));
  transport_.finish("watch", fail(ErrorCode::kTimeout, "connection lost"));
  transport_.run_for(Duration::seconds(2));
  ASSERT_EQ(watches(), 1u);
  EXPECT_NE(watch_target().find("resourceVersion=11"), std::string::npos);
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, ASilentWatchThatStandsEndsTheTrouble) {
  start();
  transport_.finish("watch", fail(ErrorCode::kUnavailable, "connection refused"));
  transport_.run_for(Duration::seconds(2));
  ASSERT_EQ(watches(), 1u);
  EXPECT_NE(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(17));
  EXPECT_EQ(watches(), 1u);
  EXPECT_EQ(reflector_->last_error(), "");
}

// A kube-apiserver answers so where nobody has installed the group's definitions: no Status, just a line.
TEST_F(ReflectorTest, AResourceThatTheServerDoesNotHaveIsTold) {
  failures_ = {FakeReply::json(404, "404 page not found\n")};
  start();
  EXPECT_TRUE(reflector_->refused());
  EXPECT_NE(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(2));
  EXPECT_FALSE(reflector_->refused());
}

TEST_F(ReflectorTest, AServerThatIsAwayDoesNotRefuse) {
  failures_ = {FakeReply::json(500, "no")};
  start();
  EXPECT_NE(reflector_->last_error(), "");
  EXPECT_FALSE(reflector_->refused());
}

TEST_F(ReflectorTest, WatchesThatStoodForLongDoNotLengthenTheBackoff) {
  start();
  for (int lost = 0; lost < 10; ++lost) {
    transport_.finish("watch", fail(ErrorCode::kUnavailable, "connection lost"));
    transport_.run_for(Duration::seconds(1));
    ASSERT_EQ(watches(), 1u) << lost;
    transport_.run_for(Duration::seconds(30));
  }
}

TEST_F(ReflectorTest, GoneAsAnEventListsAgain) {
  start();
  drain();
  store_.pop_back(), version_ = 20;
  transport_.push("watch",
                  frame("ERROR", {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}, {"message", "too old"}}));
  transport_.run_for(Duration::millis(1));
  EXPECT_EQ(reflector_->last_error(), "");  // a matter of course
  EXPECT_FALSE(reflector_->synced());
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,b,@20"}));
  EXPECT_EQ(reflector_->stats().gone, 1u);
}

TEST_F(ReflectorTest, GoneAsAStatusListsAgain) {
  start();
  drain();
  transport_.finish("watch", io::HttpResponse{410, {}, R"({"kind":"Status","code":410,"reason":"Expired"})"});
  EXPECT_EQ(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
}

TEST_F(ReflectorTest, GoneAmidThePagesStartsTheListAfresh) {
  failures_ = {};
  bool once = true;
  transport_.on_request([&](const HttpRequest& request) {
    if (once && request.target.find("continue") != std::string::npos) {
      once = false;
      return FakeReply::json(410, R"({"kind":"Status","code":410,"reason":"Expired"})");
    }
    return list(request);
  });
  start();
  EXPECT_EQ(drain(), Log{});
  EXPECT_FALSE(reflector_->synced());
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
}

TEST_F(ReflectorTest, MalformedObjectsAreNamedAndTheRestGoesOn) {
  store_[1]["bad"] = true;
  start();
  EXPECT_EQ(drain(), (Log{"list a,c,@10", "bad ns/b/uid-b"}));
  json x = pod("x", 11), y = pod("y", 13);
  x["bad"] = y["bad"] = true;
  x["status"] = {{"phase", "Failed"}};
  x["spec"] = {{"nodeName", "n"}};
  transport_.push("watch", frame("ADDED", x) + frame("ADDED", pod("d", 12)) + frame("DELETED", y));
  EXPECT_EQ(drain(), (Log{"bad ns/x/uid-x on n over", "up d", "bad ns/y/uid-y deleted"}));
}

TEST_F(ReflectorTest, BacksOffAndHonoursRetryAfter) {
  failures_ = {FakeReply::json(429, "{}").with_header("retry-after", "20"),
               FakeReply::error(ErrorCode::kUnavailable, "refused")};
  start();
  transport_.run_for(Duration::seconds(19));
  EXPECT_EQ(lists_.size(), 1u);
  transport_.run_for(Duration::millis(1500));
  EXPECT_NE(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(5));
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
  EXPECT_EQ(reflector_->last_error(), "");
}

// As it does while a changed definition is taken up.
TEST_F(ReflectorTest, AServerThatAsksToSlowDownIsNoTroubleUntilItDoesSoForLong) {
  start();
  transport_.finish("watch", io::HttpResponse{429, {{"retry-after", "1"}}, "storage is (re)initializing"});
  EXPECT_EQ(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(3));
  ASSERT_EQ(watches(), 1u);
  EXPECT_TRUE(reflector_->synced());
  transport_.on_request([](const HttpRequest&) { return FakeReply::json(429, "{}"); });
  transport_.finish("watch", io::HttpResponse{410, {}, R"({"kind":"Status","code":410,"reason":"Expired"})"});
  transport_.run_for(Duration::seconds(20));
  EXPECT_EQ(reflector_->last_error(), "");
  transport_.run_for(Duration::seconds(60));
  EXPECT_NE(reflector_->last_error(), "");
}

TEST_F(ReflectorTest, NeverLoopsHotWhenTheServerClosesEveryWatch) {
  transport_.on_stream([](const HttpRequest&) { return FakeReply::json(200, ""); });
  start();
  transport_.run_for(Duration::seconds(60));
  EXPECT_LT(reflector_->stats().watches, 20u);
}

TEST_F(ReflectorTest, ASilentWatchIsReplaced) {
  start();
  const auto first = transport_.streams().rbegin()->first;
  transport_.run_for(Duration::seconds(100));
  EXPECT_EQ(transport_.streams().rbegin()->first, first);
  transport_.run_for(Duration::seconds(60));
  ASSERT_EQ(watches(), 1u);
  EXPECT_NE(transport_.streams().rbegin()->first, first);
  EXPECT_EQ(reflector_->last_error(), "");
  EXPECT_EQ(reflector_->stats().failures, 0u);
}

TEST_F(ReflectorTest, AStoreThatWentBackIsListedAgainAndSaidSo) {
  start();
  drain();
  version_ = 5;
  transport_.push("watch", frame("MODIFIED", pod("a", 4)));
  EXPECT_EQ(drain(), Log{});
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,b,c,@5 back"}));
}

TEST_F(ReflectorTest, GarbageOnTheWatchMeansAList) {
  start();
  drain();
  transport_.push("watch", "<html>proxy</html>\n");
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
}

TEST_F(ReflectorTest, StopSilencesTheSink) {
  start();
  drain();
  const auto chunk = transport_.streams().rbegin()->second.callbacks.on_chunk;
  reflector_->stop();
  chunk(frame("ADDED", pod("d", 11)));
  transport_.run_for(Duration::seconds(60));
  EXPECT_EQ(drain(), Log{});
}

using api::Bytes;

std::string enveloped(std::string_view object) {
  const std::string type = Bytes().text(1, "v1").text(2, "PodList").done();
  return std::string("k8s\0", 4) + Bytes().text(1, type).text(2, object).text(3, "").text(4, "").done();
}

std::string pod_protobuf(const std::string& name, std::string_view more = {}) {
  const std::string metadata = Bytes().text(1, name).text(3, "ns").text(5, "uid-" + name).done();
  return Bytes().text(1, metadata).raw(more).done();
}

std::string page_protobuf(const std::string& version, const std::string& token,
                          std::initializer_list<std::string> items) {
  Bytes list;
  list.text(1, Bytes().text(1, "").text(2, version).text(3, token).done());
  for (const std::string& item : items) list.text(2, item);
  return enveloped(list.done());
}

std::string status_protobuf(int code, const std::string& reason, const std::string& message, uint64_t after_s = 0) {
  const std::string details = Bytes().text(1, "").number(5, after_s).done();
  return enveloped(Bytes()
                       .text(1, "")
                       .text(2, "Failure")
                       .text(3, message)
                       .text(4, reason)
                       .text(5, details)
                       .number(6, static_cast<uint64_t>(code))
                       .done());
}

// Lists of pods are asked for in protobuf; answers come from `replies_`, one for each page, the last for all after it.
class ProtobufReflectorTest : public ReflectorTest {
 protected:
  void SetUp() override {
    ReflectorTest::SetUp();
    open({.resource = kPods, .protobuf = &api::kPodProtobuf});
    transport_.on_request([this](const HttpRequest& request) {
      lists_.push_back(request.target);
      for (const io::Header& header : request.headers)
        if (header.name == "Accept") accepted_.push_back(header.value);
      FakeReply reply = replies_.front();
      if (replies_.size() > 1) replies_.erase(replies_.begin());
      return reply;
    });
  }

  std::vector<FakeReply> replies_;
  std::vector<std::string> accepted_;
};

TEST_F(ProtobufReflectorTest, ListsInProtobufAndWatchesInJson) {
  replies_ = {FakeReply::json(200, page_protobuf("10", "more of it", {pod_protobuf("a"), pod_protobuf("b")})),
              FakeReply::json(200, page_protobuf("10", "", {pod_protobuf("c")}))};
  start();
  EXPECT_EQ(accepted_, Log(2, "application/vnd.kubernetes.protobuf, application/json"));
  EXPECT_EQ(lists_[1], "/api/v1/pods?limit=500&continue=more%20of%20it");
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
  EXPECT_NE(watch_target().find("resourceVersion=10"), std::string::npos);
  std::string watched_in;
  for (const io::Header& header : transport_.streams().rbegin()->second.request.headers)
    if (header.name == "Accept") watched_in = header.value;
  EXPECT_EQ(watched_in, "application/json");
  transport_.push("watch", frame("ADDED", pod("d", 11)));
  EXPECT_EQ(drain(), (Log{"up d"}));
}

TEST_F(ProtobufReflectorTest, AnAnswerInJsonIsTakenAsSuch) {
  transport_.on_request([this](const HttpRequest& request) { return list(request); });
  start();
  EXPECT_EQ(drain(), (Log{"list a,b,c,@10"}));
}

TEST_F(ProtobufReflectorTest, BrokenObjectsAreNamedAsFarAsTheyCanBeReadAndTheRestGoesOn) {
  const std::string spec = Bytes().text(10, "n").text(22, "\x0b").done(), status = Bytes().text(1, "Failed").done();
  const std::string unread = Bytes().raw("\x7f\x7f").done();
  replies_ = {FakeReply::json(200, page_protobuf("10", "",
                                                 {pod_protobuf("a"), pod_protobuf("b", Bytes().text(2, spec).done()),
                                                  pod_protobuf("c", Bytes().text(2, spec).text(3, status).done()),
                                                  pod_protobuf("d", unread), "\x0b", pod_protobuf("e")}))};
  start();
  EXPECT_EQ(drain(),
            (Log{"list a,e,@10", "bad ns/b/uid-b on n", "bad ns/c/uid-c on n over", "bad ns/d/uid-d", "bad //"}));
}

TEST_F(ProtobufReflectorTest, RefusalsInProtobufAreSaidInTheServersWords) {
  replies_ = {FakeReply::json(403, status_protobuf(403, "Forbidden", "pods is forbidden: not yours"))};
  start();
  EXPECT_EQ(reflector_->last_error(), "GET /api/v1/pods: Forbidden: pods is forbidden: not yours");
  EXPECT_TRUE(reflector_->refused());
  replies_ = {FakeReply::json(200, page_protobuf("10", "", {pod_protobuf("a")}))};
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list a,@10"}));
}

TEST_F(ProtobufReflectorTest, GoneInProtobufAmidThePagesStartsTheListAfresh) {
  replies_ = {FakeReply::json(200, page_protobuf("10", "more", {pod_protobuf("a")})),
              FakeReply::json(410, status_protobuf(410, "Expired", "too old")),
              FakeReply::json(200, page_protobuf("11", "", {pod_protobuf("b")}))};
  start();
  EXPECT_EQ(reflector_->stats().gone, 1u);
  transport_.run_for(Duration::seconds(2));
  EXPECT_EQ(drain(), (Log{"list b,@11"}));
}

TEST_F(ProtobufReflectorTest, RetryAfterInProtobufIsHonoured) {
  replies_ = {FakeReply::json(429, status_protobuf(429, "TooManyRequests", "later", 20)),
              FakeReply::json(200, page_protobuf("10", "", {pod_protobuf("a")}))};
  start();
  transport_.run_for(Duration::seconds(19));
  EXPECT_EQ(lists_.size(), 1u);
  transport_.run_for(Duration::seconds(5));
  EXPECT_EQ(drain(), (Log{"list a,@10"}));
}

TEST_F(ProtobufReflectorTest, AnAnswerThatIsNoListIsAskedForAgain) {
  const std::string whole = page_protobuf("10", "", {pod_protobuf("a")});
  const std::vector<std::string> wrong = {
      whole.substr(0, 4),
      whole.substr(0, whole.size() - 10),
      enveloped("\x0b\x0c"),
      enveloped("\x12\x7f"
                "abc"),
      status_protobuf(403, "Forbidden", "said with 200"),
      enveloped(Bytes().text(1, Bytes().text(2, "10").raw("\x1a\x7f").done()).done()),
      enveloped(Bytes().text(1, Bytes().text(2, "10").done()).number(2, 1).done()),
      std::string("k8s\0", 4) + Bytes().text(2, "x").text(3, "gzip").done(),
      R"({"kind":"NodeList","metadata":{"resourceVersion":"10"},"items":[]})",
      R"({"metadata":{"resourceVersion":"10"},"items":[]})"};
  for (const std::string& body : wrong) replies_.push_back(FakeReply::json(200, body));
  replies_.push_back(FakeReply::json(200, whole));
  start();
  EXPECT_NE(reflector_->last_error().find("the server's list is not what Kubernetes sends"), std::string::npos);
  transport_.run_for(Duration::seconds(200));
  EXPECT_EQ(lists_.size(), wrong.size() + 1);
  EXPECT_EQ(drain(), (Log{"list a,@10"}));
}

TEST_F(ProtobufReflectorTest, AListWithoutAnEndIsGivenUp) {
  replies_.push_back(FakeReply::json(200, page_protobuf("10", "again", {pod_protobuf("a")})));
  replies_.push_back(FakeReply::json(200, page_protobuf("10", "again", {pod_protobuf("a")})));
  replies_.push_back(FakeReply::json(200, page_protobuf("10", "", {pod_protobuf("a")})));
  start();
  EXPECT_NE(reflector_->last_error().find("has no end"), std::string::npos) << reflector_->last_error();
  transport_.run_for(Duration::seconds(10));
  EXPECT_EQ(drain(), (Log{"list a,@10"}));
}

TEST(ReadListPage, AcceptsAnEmptyListOfEitherForm) {
  int items = 0;
  for (std::string body :
       {R"({"metadata":{"resourceVersion":"1"},"items":null})", R"({"items":[],"metadata":{"resourceVersion":"1"}})"}) {
    const auto page = read_list_page(body, [&](std::string_view) { ++items; });
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(page->resource_version, "1");
  }
  EXPECT_EQ(items, 0);
}

TEST(ReadListPage, RefusesWhatIsNoList) {
  for (std::string body :
       {"", "[]", "{}", "null", R"({"items":[1],"metadata":{"resourceVersion":"1"}})", R"({"items":[{)"})
    EXPECT_FALSE(read_list_page(body, [](std::string_view) {})) << body;
}

}  // namespace
}  // namespace berth::kube
