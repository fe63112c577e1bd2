#include "apps/scheduler/authorizer.h"

#include <absl/container/flat_hash_map.h>

#include <mutex>
#include <nlohmann/json.hpp>

namespace berth::apps {
namespace {

using nlohmann::json;

constexpr Duration kKeep = Duration::seconds(10);
constexpr size_t kTokensMax = 1000;

struct Decisions {
  struct Entry {
    int status;
    Time until;
  };
  std::mutex mutex;
  absl::flat_hash_map<std::string, Entry> by_token;
};

class Review : public std::enable_shared_from_this<Review> {
 public:
  Review(kube::Client& client, io::Transport& transport, std::shared_ptr<Decisions> decisions, std::string path,
         std::string token, std::function<void(int)> decided)
      : client_(client),
        transport_(transport),
        decisions_(std::move(decisions)),
        path_(std::move(path)),
        token_(std::move(token)),
        decided_(std::move(decided)) {}

  void start() {
    const json body{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token_}}}};
    client_.create("/apis/authentication.k8s.io/v1/tokenreviews",
                   body.dump(-1, ' ', true, json::error_handler_t::replace),
                   [self = shared_from_this()](const Result<std::string>& answer) { self->reviewed(answer); });
  }

 private:
  void reviewed(const Result<std::string>& answer) {
    const json object = answer ? json::parse(*answer, nullptr, false) : json();
    const json status = object.is_object() ? object.value("status", json::object()) : json::object();
    if (!answer) return decided_(503);
    if (!status.value("authenticated", false)) return decide(401);
    const json user = status.value("user", json::object());
    json spec{{"user", user.value("username", "")},
              {"groups", user.value("groups", json::array())},
              {"uid", user.value("uid", "")},
              {"nonResourceAttributes", {{"path", path_}, {"verb", "get"}}}};
    if (user.contains("extra")) spec["extra"] = user["extra"];
    const json body{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", spec}};
    client_.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body.dump(),
                   [self = shared_from_this()](const Result<std::string>& a) { self->authorized(a); });
  }

  void authorized(const Result<std::string>& answer) {
    if (!answer) return decided_(503);
    const json object = json::parse(*answer, nullptr, false);
    const json status = object.is_object() ? object.value("status", json::object()) : json::object();
    decide(status.value("allowed", false) ? 200 : 403);
  }

  void decide(int status) {
    {
      const std::lock_guard lock(decisions_->mutex);
      if (decisions_->by_token.size() >= kTokensMax) decisions_->by_token.clear();
      decisions_->by_token[token_] = {status, transport_.clock().monotonic() + kKeep};
    }
    decided_(status);
  }

  kube::Client& client_;
  io::Transport& transport_;
  std::shared_ptr<Decisions> decisions_;
  std::string path_, token_;
  std::function<void(int)> decided_;
};

}  // namespace

io::AuthHook token_review_hook(kube::Client& client, io::Transport& transport, std::string path) {
  auto decisions = std::make_shared<Decisions>();
  return [&client, &transport, decisions, path](const io::ServerRequest& request, std::function<void(int)> decided) {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view header = request.header("authorization");
    if (!header.starts_with(kBearer)) return decided(401);
    std::string token(header.substr(kBearer.size()));
    int known = 0;
    {
      const std::lock_guard lock(decisions->mutex);
      const auto at = decisions->by_token.find(token);
      if (at != decisions->by_token.end() && at->second.until > transport.clock().monotonic())
        known = at->second.status;
    }
    if (known != 0) return decided(known);
    std::make_shared<Review>(client, transport, decisions, path, std::move(token), std::move(decided))->start();
  };
}

}  // namespace berth::apps
