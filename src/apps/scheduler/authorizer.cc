#include "apps/scheduler/authorizer.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kube/answer.h"

namespace berth::apps {
namespace {

using nlohmann::json;

using api::Field;
using api::Members;
using api::Reader;

constexpr Duration kKeep = Duration::seconds(10);
constexpr size_t kTokensMax = 1000;

// What is read of a TokenReview, and of a SubjectAccessReview. A member that is absent or null says nothing.
struct User {
  std::string name, uid;
  std::vector<std::string> groups;
  json extra = json::object();  // of lists of strings
};
struct TokenReview {
  std::optional<bool> authenticated;
  User user;
};
struct AccessReview {
  std::optional<bool> allowed;
};

void read_extra(const Reader& reader, User& user) {
  if (!reader.expect(api::JsonType::kObject)) return;
  for (Members members(reader); members.next();) {
    std::vector<std::string> values;
    if (!members.value().is_null()) members.value().read(values);
    user.extra[std::string(members.key())] = std::move(values);
  }
}

constexpr Field<User> kUser[] = {{"username", [](const Reader& r, User& user) { r.read(user.name); }},
                                 {"uid", [](const Reader& r, User& user) { r.read(user.uid); }},
                                 {"groups", [](const Reader& r, User& user) { r.read(user.groups); }},
                                 {"extra", read_extra}};
constexpr Field<TokenReview> kTokenStatus[] = {
    {"authenticated", [](const Reader& r, TokenReview& review) { r.read(review.authenticated); }},
    {"user", [](const Reader& r, TokenReview& review) { read_object(r, kUser, review.user); }}};
constexpr Field<TokenReview> kTokenReview[] = {{"status", [](const Reader& r, TokenReview& review) {
                                                  review.authenticated = false;
                                                  read_object(r, kTokenStatus, review);
                                                }}};
constexpr Field<AccessReview> kAccessStatus[] = {
    {"allowed", [](const Reader& r, AccessReview& review) { r.read(review.allowed); }}};
constexpr Field<AccessReview> kAccessReview[] = {{"status", [](const Reader& r, AccessReview& review) {
                                                    review.allowed = false;
                                                    read_object(r, kAccessStatus, review);
                                                  }}};

Result<TokenReview> read_token_review(const std::string& body) {
  constexpr std::string_view kWhat = "TokenReview";
  BERTH_TRY(review, kube::read_answer(body, kWhat, kTokenReview));
  if (!review.authenticated) return fail(kube::not_an_answer(kWhat, "there is no status"));
  if (*review.authenticated && review.user.name.empty())
    return fail(kube::not_an_answer(kWhat, "status.user.username: a user without a name is authenticated"));
  return review;
}

Result<bool> read_access_review(const std::string& body) {
  constexpr std::string_view kWhat = "SubjectAccessReview";
  BERTH_TRY(review, kube::read_answer(body, kWhat, kAccessReview));
  if (!review.allowed) return fail(kube::not_an_answer(kWhat, "there is no status"));
  return *review.allowed;
}

std::string text_of(const json& body) { return body.dump(-1, ' ', true, json::error_handler_t::replace); }

// The token of "Bearer <token>", whose scheme may be written in any case (RFC 9110, 11.1); empty without one.
std::string_view bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  const auto same = [](char wanted, unsigned char given) { return wanted == std::tolower(given); };
  if (header.size() < kScheme.size() || !std::equal(kScheme.begin(), kScheme.end(), header.begin(), same)) return {};
  const size_t begin = header.find_first_not_of(' ', kScheme.size());
  return begin == std::string_view::npos ? std::string_view{} : header.substr(begin);
}

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
  Review(kube::Client& client, io::Transport& transport, std::shared_ptr<Decisions> decisions, Guarded guarded,
         std::string token, std::function<void(int)> decided)
      : client_(client),
        transport_(transport),
        decisions_(std::move(decisions)),
        guarded_(std::move(guarded)),
        token_(std::move(token)),
        decided_(std::move(decided)) {}

  void start() {
    const json body{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token_}}}};
    client_.create("/apis/authentication.k8s.io/v1/tokenreviews", text_of(body),
                   [self = shared_from_this()](const Result<std::string>& answer) {
                     const auto review = answer ? read_token_review(*answer) : fail(answer.error());
                     if (!review) return self->trouble(review.error());
                     if (!*review->authenticated) return self->decide(401);
                     self->ask_access(review->user);
                   });
  }

 private:
  void ask_access(const User& user) {
    json spec{{"user", user.name},
              {"groups", user.groups},
              {"uid", user.uid},
              {"nonResourceAttributes", {{"path", guarded_.path}, {"verb", "get"}}}};
    if (!user.extra.empty()) spec["extra"] = user.extra;
    const json body{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", spec}};
    client_.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", text_of(body),
                   [self = shared_from_this()](const Result<std::string>& answer) {
                     const auto allowed = answer ? read_access_review(*answer) : fail(answer.error());
                     if (!allowed) return self->trouble(allowed.error());
                     self->decide(*allowed ? 200 : 403);
                   });
  }

  // Nobody knows who it is or whether they may: refused, and asked again the next time.
  void trouble(const Error& error) {
    if (guarded_.on_error) guarded_.on_error(error);
    decided_(503);
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
  const Guarded guarded_;
  const std::string token_;
  const std::function<void(int)> decided_;
};

}  // namespace

io::AuthHook token_review_hook(kube::Client& client, io::Transport& transport, const Guarded& guarded) {
  auto decisions = std::make_shared<Decisions>();
  return [&client, &transport, decisions, guarded](const io::ServerRequest& request, std::function<void(int)> decided) {
    std::string token(bearer_token(request.header("authorization")));
    if (token.empty()) return decided(401);
    int known = 0;
    {
      const std::lock_guard lock(decisions->mutex);
      const auto at = decisions->by_token.find(token);
      if (at != decisions->by_token.end() && at->second.until > transport.clock().monotonic())
        known = at->second.status;
    }
    if (known != 0) return decided(known);
    std::make_shared<Review>(client, transport, decisions, guarded, std::move(token), std::move(decided))->start();
  };
}

}  // namespace berth::apps
