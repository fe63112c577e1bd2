// What `berth webhook --watch` sees from within a pod, of an API server that knows its service account.
#include "apps/webhook/watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "io/http_server.h"
#include "io/tls_test_files.h"

namespace berth::apps {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;
using webhook::QueueIs;

class InPod : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("berth-watch-test-{}", getpid());
    std::filesystem::create_directories(folder_);
    const io::TestPair pair = io::make_test_cert(ca_, "kubernetes");
    write("tls.crt", pair.cert_pem);
    write("tls.key", pair.key_pem);
    write("ca.crt", ca_.cert_pem);
    write("token", "of-the-account\n");
    write("namespace", "berth-system");
    lists_["/apis/kueue.x-k8s.io/v1beta2/localqueues"] = {
        "LocalQueueList", local_queue("team", "red") + "," + local_queue("lost", "gone")};
    lists_["/apis/kueue.x-k8s.io/v1beta2/clusterqueues"] = {"ClusterQueueList",
                                                            R"({"metadata": {"name": "red"}, "spec": {}})"};
    lists_["/api/v1/resourcequotas"] = {
        "ResourceQuotaList",
        R"({"metadata": {"name": "gpus", "namespace": "ml"}, "spec": {"hard": {"requests.nvidia.com/gpu": "8"}},
            "status": {"used": {"requests.nvidia.com/gpu": "5"}}})"};
    lists_["/api/v1/limitranges"] = {"LimitRangeList", ""};
    io::HttpServerOptions options;
    options.tls_cert_file = folder_ / "tls.crt";
    options.tls_key_file = folder_ / "tls.key";
    auto server = io::HttpServer::start(
        options, {{.path = "/", .handler = [this](const io::ServerRequest& request) { return answer(request); }}});
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override {
    if (server_) server_->stop();
    std::filesystem::remove_all(folder_);
  }

  static std::string local_queue(const std::string& name, const std::string& leads_to) {
    return fmt::format(R"({{"metadata": {{"name": "{}", "namespace": "ml"}}, "spec": {{"clusterQueue": "{}"}}}})", name,
                       leads_to);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  // As a pod of the cluster finds it.
  std::unique_ptr<ClusterWatch> start() {
    kube::AccessOptions options;
    const std::map<std::string, std::string> env = {{"KUBERNETES_SERVICE_HOST", "127.0.0.1"},
                                                    {"KUBERNETES_SERVICE_PORT", std::to_string(server_->port())}};
    options.getenv = [env](const std::string& name) {
      return env.contains(name) ? std::optional(env.at(name)) : std::nullopt;
    };
    options.service_account_dir = folder_;
    api::Problems problems;
    const auto access = kube::load_access(options, problems);
    EXPECT_TRUE(access.has_value()) << (problems.empty() ? "" : api::to_string(problems.front()));
    auto watch = ClusterWatch::start(*access);
    EXPECT_TRUE(watch.has_value()) << watch.error().message;
    return std::move(*watch);
  }
  template <typename Holds>
  static bool soon(Holds holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return holds();
  }
  static int seen_kinds(const ClusterWatch& watch) {
    int seen = 0;
    for (const auto& [kind, synced] : watch.synced()) seen += synced ? 1 : 0;
    return seen;
  }

  std::atomic<int> refused_{0};
  std::filesystem::path folder_;

 private:
  // On the server's thread. A watch ends at once, with nothing.
  io::ServerResponse answer(const io::ServerRequest& request) {
    if (request.header("authorization") != "Bearer of-the-account")
      return ++refused_, io::ServerResponse{.status = 401};
    const auto list = lists_.find(request.path);
    if (list == lists_.end()) return {.status = 404};
    if (request.query.find("watch=") != std::string::npos) return {};
    return {.content_type = "application/json",
            .body = fmt::format(R"({{"kind": "{}", "metadata": {{"resourceVersion": "7"}}, "items": [{}]}})",
                                list->second.first, list->second.second)};
  }

  io::TestPair ca_ = io::make_test_ca("the cluster's authority");
  std::map<std::string, std::pair<std::string, std::string>> lists_;  // by path: the list's kind, its objects
  std::unique_ptr<io::HttpServer> server_;
};

TEST_F(InPod, ItIsKnownByItsServiceAccountAndSeesWhereQueuesLead) {
  const auto watch = start();
  ASSERT_TRUE(soon([&] { return seen_kinds(*watch) == 4; }));
  EXPECT_EQ(watch->local_queue("ml", "team"), QueueIs::kThere);
  EXPECT_EQ(watch->missing_cluster_queue("ml", "team"), "");
  EXPECT_EQ(watch->missing_cluster_queue("ml", "lost"), "gone");
  EXPECT_EQ(watch->local_queue("other", "team"), QueueIs::kMissing) << "it is a queue of another namespace";
  EXPECT_EQ(watch->missing_cluster_queue("other", "team"), "");
  const webhook::NamespaceSeen seen = watch->limits_of("ml");
  ASSERT_THAT(seen.quotas, SizeIs(1));
  EXPECT_EQ(seen.quotas[0].used.get("requests.nvidia.com/gpu"), 5);
  EXPECT_EQ(refused_, 0);
}

TEST_F(InPod, WithATokenThatIsRefusedItKnowsNothingAndSaysSo) {
  write("token", "of-nobody");
  const auto watch = start();
  ASSERT_TRUE(soon([&] { return refused_ > 0; }));
  EXPECT_THAT(watch->synced(), Each(Pair(testing::_, false)));
  EXPECT_EQ(watch->local_queue("ml", "team"), QueueIs::kUnknown);
  EXPECT_EQ(watch->missing_cluster_queue("ml", "lost"), "");
}

}  // namespace
}  // namespace berth::apps
